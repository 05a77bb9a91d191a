package servers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// kafkaVersion is the version of the Maven artifacts and of the image.
const kafkaVersion = "4.1.0"

// kafkaPOM asks Maven for a broker and for a logger that writes to standard
// error.
const kafkaPOM = `<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>oncefence</groupId>
  <artifactId>kafka-libs</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>` + kafkaVersion + `</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
`

// kafkaLibs returns the folder of Kafka's jars, fetching them when they are not
// cached and Maven is there. Two processes that fetch at once do not disturb
// each other: the folder appears complete or not at all.
func kafkaLibs(ctx context.Context) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "kafka-"+kafkaVersion)
	libs := filepath.Join(home, "libs")
	if haveKafka(libs) {
		return libs, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", absent("no Kafka jars in %s, and mvn, which would fetch them, is not in PATH (apt-get install maven)", libs)
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", fmt.Errorf("kafka jars: %w", err)
	}
	tmp, err := os.MkdirTemp(home, "fetch-")
	if err != nil {
		return "", fmt.Errorf("kafka jars: %w", err)
	}
	defer os.RemoveAll(tmp)
	fmt.Fprintf(os.Stderr, "kafka: fetching the jars of version %s with Maven, once, to %s\n", kafkaVersion, libs)
	if err := fetchKafka(ctx, mvn, tmp); err != nil {
		return "", err
	}
	// A folder without the jar is what is left of something else.
	if err := os.Rename(filepath.Join(tmp, "libs"), libs); err != nil && !haveKafka(libs) {
		return "", fmt.Errorf("kafka jars: %w: remove %s", err, libs)
	}
	return libs, nil
}

func fetchKafka(ctx context.Context, mvn, dir string) error {
	pom := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(pom, []byte(kafkaPOM), 0o644); err != nil {
		return fmt.Errorf("kafka jars: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	libs := filepath.Join(dir, "libs")
	out, err := exec.CommandContext(
		ctx, mvn, "-q", "-B", "-f", pom,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+libs,
	).CombinedOutput()
	if err != nil {
		return absent("mvn cannot fetch the Kafka jars: %w: %s", err, out[max(0, len(out)-1000):])
	}
	if !haveKafka(libs) {
		return errors.New("mvn says that it fetched the Kafka jars, but they are not there")
	}
	return nil
}

func haveKafka(libs string) bool {
	_, err := os.Stat(filepath.Join(libs, "kafka_2.13-"+kafkaVersion+".jar"))
	return !errors.Is(err, fs.ErrNotExist)
}

// cacheDir is where downloads are kept between runs.
func cacheDir() (string, error) {
	if dir := os.Getenv("ONCEFENCE_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", absent("no place to keep the Kafka jars: %w: set ONCEFENCE_CACHE", err)
	}
	return filepath.Join(dir, "oncefence"), nil
}
