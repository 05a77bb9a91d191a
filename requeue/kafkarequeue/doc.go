// Package kafkarequeue writes copies and dead letters to Kafka with franz-go,
// and sees to the topics that they go to.
//
// A record counts as written when all in-sync replicas have acknowledged it.
// Every other end (an error code of the broker, a time-out, a closed client, an
// acknowledgement without an offset) is an error, and what was to be settled on
// the strength of the copy stays unsettled. The copy may be in the topic all the
// same; it is written again then, and the fence makes sure that it runs once.
package kafkarequeue
