package servers

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/testcontainers/testcontainers-go"
)

// kafkaStarter is the script for which the container waits.
const kafkaStarter = "/tmp/oncefence-start.sh"

// kafkaDocker runs one broker. What it advertises must hold the mapped port,
// which is known only once the container runs: so the container first waits for
// a script, and the script exports the address and starts the image's own
// entry point, which takes its settings from KAFKA_ variables.
func kafkaDocker(ctx context.Context, o KafkaOptions) (*KafkaServer, error) {
	if o.Brokers > 1 {
		return nil, absent("containers start one broker, %d were asked for", o.Brokers)
	}
	c, err := startContainer(ctx, testcontainers.ContainerRequest{
		Image:        kafkaImage,
		ExposedPorts: []string{"9092/tcp"},
		Env:          kafkaEnv(o),
		Entrypoint:   []string{"sh", "-c", "while [ ! -f " + kafkaStarter + " ]; do sleep 0.05; done; exec sh " + kafkaStarter},
		Cmd:          []string{},
	})
	if err != nil {
		return nil, err
	}
	s := &KafkaServer{origin: Docker, brokers: []string{c.addr}, stop: c.close}
	ready := func(ctx context.Context) error { return pingKafka(ctx, s) }
	if err := c.startKafka(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", err, c.close())
	}
	return s, c.await(ctx, ready)
}

// startKafka puts the script into the container, under its name only once it is
// complete.
func (c *container) startKafka(ctx context.Context) error {
	script := strings.Join([]string{
		"export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://" + c.addr + ",INSIDE://localhost:9094",
		"exec /etc/kafka/docker/run",
	}, "\n")
	put := fmt.Sprintf("printf '%%s\\n' '%s' > %s.part && mv %s.part %s", script, kafkaStarter, kafkaStarter, kafkaStarter)
	status, out, err := c.Exec(ctx, []string{"sh", "-c", put})
	if err != nil {
		return fmt.Errorf("put the start script into the container: %w", err)
	}
	if status != 0 {
		said, _ := io.ReadAll(io.LimitReader(out, 2000)) // the status is what counts
		return fmt.Errorf("put the start script into the container: status %d: %s", status, said)
	}
	return nil
}

// kafkaEnv is the configuration as the image takes it: a property in upper case
// behind KAFKA_, its dots as underscores, its underscores and dashes doubled
// and tripled. The broker reaches itself on a listener of its own, since the
// mapped port is not to be reached from inside.
func kafkaEnv(o KafkaOptions) map[string]string {
	properties := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        "1",
		"controller.quorum.voters":       "1@localhost:9093",
		"controller.listener.names":      "CONTROLLER",
		"listeners":                      "PLAINTEXT://:9092,CONTROLLER://:9093,INSIDE://:9094",
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
		"inter.broker.listener.name":     "INSIDE",
		"log.dirs":                       "/tmp/kraft-combined-logs",
	}
	maps.Copy(properties, o.properties())
	env := map[string]string{
		"CLUSTER_ID":      kafkaClusterID,
		"KAFKA_HEAP_OPTS": "-Xmx512m",
	}
	spell := strings.NewReplacer("_", "__", "-", "___", ".", "_")
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		env["KAFKA_"+strings.ToUpper(spell.Replace(key))] = properties[key]
	}
	return env
}
