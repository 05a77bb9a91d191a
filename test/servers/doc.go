// Package servers finds or starts the real servers that tests and programs of
// this module run against: Kafka, Redis, PostgreSQL.
//
// In a test:
//
//	func TestMain(m *testing.M) { servers.Main(m) } // stops what was started, prints the count of skips
//
//	func TestSomething(t *testing.T) {
//		addr := servers.Redis(t).Addr()         // shared by all tests of this process
//		brokers := servers.Kafka(t).Brokers()   // likewise
//		url := servers.Postgres(t).URL()        // likewise
//		own := servers.OwnRedis(t, &servers.RedisOptions{Args: []string{"--maxmemory", "8mb"}})
//	}
//
// In a program:
//
//	kafka, err := servers.StartKafka(ctx, nil) // ctx bounds the start, not the life
//	...
//	defer kafka.Close()
//
// Servers are looked for in this order, and the first that works is taken:
//
//  1. [Address]: KAFKA_BROKERS (host:port, comma-separated), REDIS_URL and
//     POSTGRES_URL. An address that does not answer is an error: whoever set it
//     meant it. Options that need a server of one's own pass this way over.
//  2. [Docker]: the images of docker-compose.kafka.yml through
//     testcontainers-go, on mapped ports.
//  3. [Program]: redis-server; postgres and initdb from PATH or
//     /usr/lib/postgresql; Kafka from its Maven artifacts and a JDK of version
//     17 or later. They listen on free loopback ports, keep their files in
//     temporary folders, and on Linux they die with this process even when it
//     is killed.
//
// ONCEFENCE_SERVERS=address, docker or program leaves only that one.
//
// The first start of each kind is announced on standard error in one line, such
// as "kafka: program, 127.0.0.1:41234". A test that finds no server is skipped
// in loud words with a count, and fails when CI=true; a server that is there
// and does not start always fails.
//
// The Kafka jars are looked for in $ONCEFENCE_CACHE/kafka-<version>/libs (by
// default oncefence/ in [os.UserCacheDir]); when they are not there and mvn and
// java are, they are fetched once.
//
// Each test process starts its own shared servers. On two cores that takes
// about 4 s for Kafka, 1 s for PostgreSQL and 50 ms for Redis. Shared servers
// are not emptied between tests: use topics, groups, namespaces and tables of
// your own.
package servers
