package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// kafkaClusterID is the cluster id of every Kafka that is started here.
const kafkaClusterID = "b25jZWZlbmNlLXRlc3RzAA"

// kafkaJVM are the options of a broker's JVM: small, and quick to start.
var kafkaJVM = []string{
	"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
	"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
}

func kafkaProgram(ctx context.Context, o KafkaOptions) (*KafkaServer, error) {
	java, err := findJava()
	if err != nil {
		return nil, err
	}
	libs, err := kafkaLibs(ctx)
	if err != nil {
		return nil, err
	}
	jvm := append([]string{java, "-cp", filepath.Join(libs, "*")}, kafkaJVM...)
	start := func(ctx context.Context) (*KafkaServer, *programs, error) {
		ports, err := freePorts(2 * o.Brokers)
		if err != nil {
			return nil, nil, err
		}
		dir, err := workdir("kafka")
		if err != nil {
			return nil, nil, err
		}
		g := &programs{dir: dir, stop: syscall.SIGKILL}
		if err := formatKafka(ctx, o, dir, jvm, ports); err != nil {
			return nil, g, err
		}
		s := &KafkaServer{origin: Program, stop: g.close}
		for node := range o.Brokers {
			p, err := startProcess(command{
				argv: slices.Concat(jvm, []string{"kafka.Kafka", propertiesFile(dir, node)}),
				dir:  dir, log: filepath.Join(dir, fmt.Sprintf("log.%d", node)),
			})
			if err != nil {
				return nil, g, err
			}
			g.all = append(g.all, p)
			s.brokers = append(s.brokers, loopback(ports[node]))
		}
		return s, g, nil
	}
	return startPrograms(ctx, start, pingKafka)
}

// formatKafka writes each node's server.properties and log folder. The first
// half of the ports is the brokers', the second the controllers'.
func formatKafka(ctx context.Context, o KafkaOptions, dir string, jvm []string, ports []int) error {
	var voters []string
	for node := range o.Brokers {
		voters = append(voters, fmt.Sprintf("%d@%s", node, loopback(ports[o.Brokers+node])))
	}
	var tools []*process
	var errs []error
	for node := range o.Brokers {
		properties := map[string]string{
			"process.roles":                  "broker,controller",
			"node.id":                        strconv.Itoa(node),
			"controller.quorum.voters":       strings.Join(voters, ","),
			"controller.listener.names":      "CONTROLLER",
			"listeners":                      fmt.Sprintf("PLAINTEXT://%s,CONTROLLER://%s", loopback(ports[node]), loopback(ports[o.Brokers+node])),
			"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
			"log.dirs":                       filepath.Join(dir, fmt.Sprintf("data.%d", node)),
		}
		maps.Copy(properties, o.properties())
		var text strings.Builder
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			fmt.Fprintf(&text, "%s=%s\n", key, properties[key])
		}
		file := propertiesFile(dir, node)
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			return fmt.Errorf("write properties: %w", err)
		}
		p, err := startProcess(command{
			argv: slices.Concat(jvm, []string{"kafka.tools.StorageTool", "format", "-t", kafkaClusterID, "-c", file}),
			dir:  dir, log: filepath.Join(dir, fmt.Sprintf("format.%d", node)),
		})
		if err != nil {
			errs = append(errs, err)
			break
		}
		tools = append(tools, p)
	}
	for _, p := range tools {
		errs = append(errs, p.finish(ctx))
	}
	return errors.Join(errs...)
}

func propertiesFile(dir string, node int) string {
	return filepath.Join(dir, fmt.Sprintf("server.%d.properties", node))
}

// findJava returns the java of JAVA_HOME or else of PATH.
func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", "java")); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath("java")
	if err != nil {
		return "", absent("java is neither in JAVA_HOME nor in PATH (apt-get install default-jdk-headless maven)")
	}
	return path, nil
}
