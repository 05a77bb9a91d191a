// Package kafkasource reads a consumer group's partitions from Kafka, over
// franz-go.
//
//	source, err := kafkasource.New("billing", []string{"orders"}, nil,
//		kgo.SeedBrokers("kafka-1:9092"), kgo.DialTLS(), kgo.SASL(auth))
//
// The client's own options come as []kgo.Opt and are the user's business, but
// for those that would break the promise: [New] refuses them by name.
//
// # Groups
//
// Members join with cooperative-sticky rebalancing, or with the broker's
// protocol of KIP-848 ([Options.NextGenProtocol]); Info().Protocol tells which
// one is in use. A member with [Options.InstanceID] is static: Close leaves it in
// the group, and when it is back within the session timeout it goes on with its
// partitions.
//
// While Handler.Revoked runs no partition is fetched, the ones that stay
// included; what Poll had returned before can be worked on. Revoked is given
// three quarters of the rebalance timeout.
//
// # Positions
//
// A group always has a position: a partition without a commit gets its first
// one committed before its first record is delivered. Records that retention
// or an unclean election took away are never jumped over in silence: see
// [Options.OnReset]. A reset that is configured is a new assignment of the
// partition, with Lost before it, and comes with a [ResetError].
//
// Reading is read-committed. Transaction markers are not delivered but move
// Batch.NextFetch, so that a lag counted from there ends at zero. For partitions
// that are idle the watermarks are asked for from time to time
// ([Options.WatermarkInterval]): a partition that an open transaction blocks
// shows HighWatermark above LastStable.
//
// # Topics
//
// Nothing is created or changed. Topics have to exist at Start. Of the topics'
// configuration retention.ms and cleanup.policy are read, where that is allowed,
// to tell Info().Retention.
//
// A topic that is deleted and made anew while it is read stands still with an
// error that says so: its old positions mean nothing in the new one. A restarted
// member reads the new topic.
package kafkasource
