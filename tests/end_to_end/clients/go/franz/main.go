// The job of README.md with franz-go.
package main

import (
	"context"
	"errors"
	"time"

	"clients/job"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	ctx    = context.Background()
	result job.Result
	task   = job.Parse()
	tx     = task.Name + "-tx"
)

func connect(options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(task.Bootstrap), kgo.ClientID(task.Name),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(2000),
		kgo.ProducerLinger(5*time.Millisecond))...)
	job.Check(err)
	return client
}

func send(client *kgo.Client, series string, first, last int) (job.Ranges, error) {
	var records []*kgo.Record
	for i := first; i < last; i++ {
		records = append(records, &kgo.Record{Topic: task.Name, Partition: int32(i) % task.Partitions,
			Key: []byte(job.Key(series, i)), Value: []byte(job.Value(series, i))})
	}
	sent := client.ProduceSync(ctx, records...)
	ranges := job.Ranges{}
	for _, record := range records {
		ranges.Add(record.Partition, record.Offset)
	}
	return ranges, sent.FirstErr()
}

func mustSend(client *kgo.Client, series string, first, last int) job.Ranges {
	ranges, err := send(client, series, first, last)
	job.Check(err)
	return ranges
}

func transaction(client *kgo.Client, series string, end kgo.TransactionEndTry, inside ...func()) job.Ranges {
	job.Check(client.BeginTransaction())
	ranges := mustSend(client, series, 0, 30)
	for _, call := range inside {
		call()
	}
	job.Check(client.EndTransaction(ctx, end))
	return ranges
}

func runTransactions() {
	first := connect(kgo.TransactionalID(tx))
	defer first.Close()
	result.Committed = transaction(first, "committed", kgo.TryCommit, func() { commitInside(first) })
	result.Aborted = transaction(first, "aborted", kgo.TryAbort)

	second := connect(kgo.TransactionalID(tx))
	defer second.Close()
	result.Second = transaction(second, "second", kgo.TryCommit)
	job.Check(first.BeginTransaction())
	_, err := send(first, "fenced", 0, 3)
	err = errors.Join(err, first.EndTransaction(ctx, kgo.TryCommit))
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		result.SetFenced(joined.Unwrap()[0])
	}
	result.Third = transaction(second, "third", kgo.TryCommit)
}

// commitInside commits a group's offset as a part of the transaction, by the requests themselves: franz-go has no
// other way to do it without a consumer that is a member of the group.
func commitInside(client *kgo.Client) {
	producerID, epoch, err := client.ProducerID(ctx)
	job.Check(err)
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: task.Name, Partition: 0, At: 7, LeaderEpoch: -1})
	job.Check(commitOffsets(client, producerID, epoch, offsets))
}

func consume(expected int) {
	group := task.Name + "-group"
	consumer := connect(kgo.ConsumerGroup(group), kgo.ConsumeTopics(task.Name), kgo.DisableAutoCommit(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer consumer.Close()
	for len(result.Read) < expected {
		fetches := consumer.PollFetches(ctx)
		job.Check(fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) { result.AddRead(r.Partition, r.Offset, r.Key, r.Value) })
	}
	job.Check(consumer.CommitUncommittedOffsets(ctx))
}

func committedOffsets(admin *kadm.Client, group string) map[int32]int64 {
	fetched, err := admin.FetchOffsets(ctx, group)
	job.Check(err)
	offsets := map[int32]int64{}
	fetched.Each(func(o kadm.OffsetResponse) { offsets[o.Partition] = o.At })
	return offsets
}

func main() {
	client := connect()
	admin := kadm.NewClient(client)
	defer client.Close()
	created, err := admin.CreateTopic(ctx, task.Partitions, task.Replication, nil, task.Name)
	job.Check(err)
	job.Check(created.Err)

	for part := 0; part < 3; part++ {
		result.Plain = append(result.Plain, mustSend(client, "plain", task.Records*part/3, task.Records*(part+1)/3))
	}
	runTransactions()
	consume(task.Records + 90)
	result.GroupOffsets = committedOffsets(admin, task.Name+"-group")
	result.TransactionOffsets = committedOffsets(admin, tx)
	topics, err := admin.ListTopics(ctx)
	job.Check(err)
	result.TopicListed = topics.Has(task.Name)
	groups, err := admin.ListGroups(ctx)
	job.Check(err)
	for _, group := range groups.Groups() {
		result.AddGroup(task, group)
	}
	result.Print()
}
