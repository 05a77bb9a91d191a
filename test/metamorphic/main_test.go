// Package metamorphic plays one random history on several fence stores and
// wants the same answers from all.
//
// A history that tells two stores apart is made as small as it can be and
// printed, with the seed. Play it again with
//
//	go test ./test/metamorphic -run TestStores -rapid.seed=N
//
// and longer with -rapid.checks=N.
package metamorphic

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/oncefence/oncefence/test/servers"
)

// checks is how many histories each store plays by default: their time limits
// end in real time.
const checks = 25

func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"rapid.checks":     strconv.Itoa(checks),
		"rapid.seed":       strconv.FormatInt(time.Now().UnixNano(), 10),
		"rapid.nofailfile": "true", // the seed is enough
	} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	flag.Parse()
	fmt.Printf("histories of -rapid.seed=%s\n", flag.Lookup("rapid.seed").Value)
	servers.Main(m)
}
