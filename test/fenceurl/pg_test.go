package fenceurl_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/internal/fenceurl"
	"github.com/oncefence/oncefence/test/servers"
)

func TestPostgresKeepsWhatWasWritten(t *testing.T) {
	u, err := url.Parse(servers.Postgres(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("schema", "fenceurl "+time.Now().Format("150405.000000"))
	u.RawQuery = query.Encode()
	raw := u.String()
	mustExist := &fenceurl.Options{MustExist: true}
	f, err := fenceurl.OpenWith(t.Context(), raw, mustExist)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := fence.NewNamespace(fence.Nil, "billing")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(t.Context(), ns); err == nil || !strings.Contains(err.Error(), "CREATE SCHEMA") {
		t.Errorf("a schema that is not there: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	key := fence.RecordKey(fence.ScopeID, "orders", 3, fence.Nil, fence.Text("order-1"))
	ns = seal(t, raw, key)
	f, err = fenceurl.OpenWith(t.Context(), raw, mustExist)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := f.Store().Get(t.Context(), ns.Text(), []driver.Digest{key.Digest()})
	if err != nil || records[0].State != driver.Done || records[0].EffectID != "charge-1" {
		t.Errorf("read again: %v, %v", records, err)
	}
}
