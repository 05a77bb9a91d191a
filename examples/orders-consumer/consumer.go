package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/consumer/kafkasource"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/requeue/kafkarequeue"
)

// order is one order as the shop writes it.
type order struct {
	ID          string `json:"order_id"`
	Customer    string `json:"customer_id"`
	AmountCents int64  `json:"amount_cents"`
}

// orderID is the dedupe id. What does not decode is poison.
func orderID(r consumer.Record) (string, error) {
	var o order
	if err := json.Unmarshal(r.Value, &o); err != nil {
		return "", fmt.Errorf("not an order: %w", err)
	}
	return o.ID, nil
}

// consume charges each order once until ctx ends. This is the part to copy.
func consume(ctx context.Context, cfg settings, store *fence.Fence, charge effect.Effect, observer consumer.Observer) error {
	kafka := kgo.SeedBrokers(cfg.Brokers...)
	source, err := kafkasource.New(cfg.Group, []string{cfg.Topic}, &kafkasource.Options{InstanceID: cfg.Instance}, kafka)
	if err != nil {
		return err
	}
	producer, err := kafkarequeue.New(nil, kafka)
	if err != nil {
		return err
	}
	c, err := consumer.New(source, store, charge, &consumer.Options{
		Producer:  producer,
		DedupeID:  orderID,
		MissingID: consumer.MissingReject,
		Scope:     fence.ScopeID, // an order without a customer may land on another partition the second time
		Observer:  observer,

		// For a demonstration that ends soon; leave these out to get the defaults.
		Lease:          cfg.Lease,
		Schedule:       exampleSchedule,
		CommitInterval: 100 * time.Millisecond,
		MaxCrashes:     consumer.DefaultMaxCrashes + cfg.Crashes,
	})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}
