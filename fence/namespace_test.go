package fence_test

import (
	"testing"

	"github.com/oncefence/oncefence/fence"
)

func TestNamespace(t *testing.T) {
	cases := []struct {
		tenant      fence.Part
		group, want string
	}{
		{fence.Nil, "billing", "%-:billing"},
		{fence.Text(""), "billing", ":billing"},
		{fence.Text("acme"), "billing", "acme:billing"},
		{fence.Text("a:b"), "c", "a%3Ab:c"},
		{fence.Text("a"), "b:c", "a:b%3Ac"},
		{fence.Bytes([]byte{0xff}), "{g}", "%FF:%7Bg%7D"},
		{fence.Text("%-"), "%-", "%25-:%25-"},
	}
	for _, c := range cases {
		ns, err := fence.NewNamespace(c.tenant, c.group)
		if err != nil {
			t.Errorf("%s: %v", c.want, err)
			continue
		}
		if ns.Text() != c.want || ns.Group() != c.group || !ns.Tenant().Equal(c.tenant) || ns.IsZero() {
			t.Errorf("text %q, tenant %q, group %q, want %q, %q, %q", ns.Text(), ns.Tenant(), ns.Group(), c.want, c.tenant, c.group)
		}
		if again, err := fence.ParseNamespace(c.want); err != nil || again != ns {
			t.Errorf("ParseNamespace(%q) = %v, %v", c.want, again, err)
		}
	}
}

func TestNamespaceRefuses(t *testing.T) {
	if ns, err := fence.NewNamespace(fence.Text("acme"), ""); err == nil || !ns.IsZero() {
		t.Errorf("an empty group gives %v", ns)
	}
	if ns, err := fence.NewNamespace(fence.PayloadID(nil), "billing"); err == nil || !ns.IsZero() {
		t.Errorf("a fallback id as tenant gives %v", ns)
	}
	for _, text := range []string{"", "billing", "acme:", "acme:%-", "a:b:c", "acme:%#-", "%#-:billing", "a:{g}", "%-", "%-:"} {
		if ns, err := fence.ParseNamespace(text); err == nil || !ns.IsZero() {
			t.Errorf("ParseNamespace(%q) = %v, %v, want an error", text, ns, err)
		}
	}
}
