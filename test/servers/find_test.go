package servers

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNoServerIsMissing(t *testing.T) {
	for _, name := range []string{"PATH", "JAVA_HOME", "KAFKA_BROKERS", "REDIS_URL", "POSTGRES_URL"} {
		t.Setenv(name, "")
	}
	for _, from := range []Origin{Address, Program} {
		_, redisErr := StartRedis(t.Context(), &RedisOptions{From: from})
		_, kafkaErr := StartKafka(t.Context(), &KafkaOptions{From: from})
		for kind, err := range map[string]error{"redis": redisErr, "kafka": kafkaErr} {
			if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), kind+": "+string(from)) {
				t.Errorf("%s from %s: %v, want ErrMissing that names both", kind, from, err)
			}
		}
	}
	if _, err := StartPostgres(t.Context(), &PostgresOptions{From: Address}); !errors.Is(err, ErrMissing) {
		t.Errorf("postgres: %v, want ErrMissing", err)
	}
}

// A server that is there and does not start is a failure, never a skip.
func TestBrokenServerIsNotMissing(t *testing.T) {
	_, err := StartRedis(t.Context(), &RedisOptions{From: Program, Args: []string{"--no-such-setting", "1"}})
	if errors.Is(err, ErrMissing) && os.Getenv("CI") != "true" {
		require(t, err) // no redis-server here
	}
	if err == nil || errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("got %v, want redis-server's own words", err)
	}
}

func TestAddresses(t *testing.T) {
	t.Setenv("ONCEFENCE_SERVERS", "")
	there := OwnRedis(t, nil)
	t.Setenv("REDIS_URL", there.URL())

	found, err := StartRedis(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if found.Origin() != Address || found.Addr() != there.Addr() {
		t.Errorf("found %s, %s, want the address %s", found.Origin(), found.Addr(), there.Addr())
	}
	if err := found.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := pingRedis(t.Context(), there); err != nil {
		t.Errorf("closing what was found by address stopped it: %v", err)
	}

	if own := OwnRedis(t, nil); own.Addr() == there.Addr() {
		t.Error("a server of one's own is the shared one")
	}

	// An address that does not answer is not passed over.
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1/0")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := StartRedis(ctx, nil); err == nil || errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("dead address: %v, want that the connection was refused", err)
	}
}

func TestRefusedOptions(t *testing.T) {
	if _, err := StartKafka(t.Context(), &KafkaOptions{Brokers: -1}); err == nil || errors.Is(err, ErrMissing) {
		t.Errorf("-1 brokers: %v, want a refusal", err)
	}
	if _, err := StartRedis(t.Context(), &RedisOptions{From: "cloud"}); err == nil || !strings.Contains(err.Error(), "cloud") {
		t.Errorf("unknown origin: %v, want a refusal", err)
	}
}

// The compose file and this package name the same images and the same Redis.
func TestComposeFileIsTheSame(t *testing.T) {
	text, err := os.ReadFile("../../docker-compose.kafka.yml")
	if err != nil {
		t.Fatal(err)
	}
	var images []string
	for _, match := range regexp.MustCompile(`(?m)^ *image: (\S+)$`).FindAllSubmatch(text, -1) {
		images = append(images, string(match[1]))
	}
	slices.Sort(images)
	if want := []string{kafkaImage, postgresImage, redisImage}; !slices.Equal(images, want) {
		t.Errorf("the compose file has %v, this package %v", images, want)
	}
	if want := `["redis-server", "` + strings.Join(redisDefaults(), `", "`) + `"]`; !strings.Contains(string(text), want) {
		t.Errorf("the compose file does not start Redis as %s", want)
	}
}
