package httpeffect_test

import (
	"crypto/tls"
	"fmt"
	"net/http"

	"github.com/oncefence/oncefence/effect/httpeffect"
)

// Own TLS settings, proxies and limits go into a transport of net/http that
// NewTransport then counts the connections of.
func ExampleNewTransport() {
	base := &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS13},
		MaxIdleConnsPerHost: 50,
	}
	client, err := httpeffect.New(&httpeffect.Options{Transport: httpeffect.NewTransport(base)})
	fmt.Println(client != nil, err)
	// Output: true <nil>
}
