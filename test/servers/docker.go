package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// The images of the containers: docker-compose.kafka.yml names the same.
const (
	redisImage    = "redis:7.2-alpine"
	kafkaImage    = "apache/kafka:" + kafkaVersion
	postgresImage = "postgres:15-alpine"
)

// container is a running container with one mapped port.
type container struct {
	testcontainers.Container
	addr string // of the mapped port, seen from here
}

// startContainer runs an image and returns once the container runs; whether
// what is in it answers is for the caller to see. The error is absent when
// Docker or the image is not to be had.
func startContainer(ctx context.Context, request testcontainers.ContainerRequest) (*container, error) {
	if err := haveImage(ctx, request.Image); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	inner, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: request,
		Started:          true,
		Logger:           log.NewNoopLogger(),
	})
	c := &container{Container: inner}
	if err != nil {
		err = fmt.Errorf("run %s: %w", request.Image, err)
		if inner != nil {
			err = errors.Join(err, c.close())
		}
		return nil, err
	}
	c.addr, err = c.PortEndpoint(ctx, request.ExposedPorts[0], "")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("run %s: %w", request.Image, err), c.close())
	}
	return c, nil
}

// quiet turns off the library's own log, once: its setter is not for use by
// several goroutines.
var quiet = sync.OnceFunc(func() { log.SetDefault(log.NewNoopLogger()) })

// haveImage makes sure that a Docker daemon answers and has the image. It pulls
// once, at most five minutes, without the many retries of a pull through
// testcontainers, which on a machine without network would eat the test's time.
func haveImage(ctx context.Context, image string) (err error) {
	defer func() {
		if r := recover(); r != nil { // testcontainers panics on some settings that it cannot read
			err = absent("testcontainers: %v", r)
		}
	}()
	quiet()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return absent("no Docker: %w", err)
	}
	defer provider.Close()
	quick, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := provider.Health(quick); err != nil {
		return absent("Docker does not answer: %w", err)
	}
	docker := provider.Client()
	if _, err := docker.ImageInspect(ctx, image); err == nil {
		return nil
	}
	patient, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	pull, err := docker.ImagePull(patient, image, client.ImagePullOptions{})
	if err == nil {
		err = errors.Join(pull.Wait(patient), pull.Close())
	}
	if err != nil {
		return absent("image %s cannot be pulled: %w", image, err)
	}
	return nil
}

// await waits until ready returns nil. After an error the container is gone;
// the error tells the end of its log.
func (c *container) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := poll(ctx, neverEnds, ready)
	if err == nil {
		return nil
	}
	return errors.Join(err, errors.New(c.tail(ctx)), c.close())
}

// tail returns the end of the container's log, or why it cannot.
func (c *container) tail(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	r, err := c.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2000):])
}

// close removes the container and its volumes.
func (c *container) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return c.Terminate(ctx, testcontainers.StopTimeout(0))
}

func redisDocker(ctx context.Context, o RedisOptions) (*RedisServer, error) {
	command := append([]string{"redis-server"}, redisDefaults()...)
	c, err := startContainer(ctx, testcontainers.ContainerRequest{
		Image:        redisImage,
		ExposedPorts: []string{"6379/tcp"},
		Cmd:          append(command, o.Args...),
	})
	if err != nil {
		return nil, err
	}
	s := newRedis(Docker, c.addr, c.close)
	return s, c.await(ctx, func(ctx context.Context) error { return pingRedis(ctx, s) })
}

func postgresDocker(ctx context.Context, o PostgresOptions) (*PostgresServer, error) {
	c, err := startContainer(ctx, testcontainers.ContainerRequest{
		Image:        postgresImage,
		ExposedPorts: []string{"5432/tcp"},
		Env: map[string]string{
			"POSTGRES_USER":     postgresUser,
			"POSTGRES_PASSWORD": postgresPassword,
			"POSTGRES_DB":       postgresDatabase,
		},
		Cmd: append([]string{"postgres"}, o.args()...),
	})
	if err != nil {
		return nil, err
	}
	s := newPostgres(Docker, c.addr, c.close)
	return s, c.await(ctx, func(ctx context.Context) error { return pingPostgres(ctx, s) })
}
