// The job of README.md with Sarama.
package main

import (
	"context"
	"time"

	"clients/job"

	"github.com/IBM/sarama"
)

var (
	result job.Result
	task   = job.Parse()
	tx     = task.Name + "-tx"
)

func config() *sarama.Config {
	config := sarama.NewConfig()
	config.ClientID = task.Name
	config.Version = sarama.MaxVersion
	config.Net.MaxOpenRequests = 1
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Producer.Return.Successes = true
	config.Producer.Flush.MaxMessages = 20
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func producer(transactionalID string) sarama.SyncProducer {
	settings := config()
	settings.Producer.Transaction.ID = transactionalID
	producer, err := sarama.NewSyncProducer([]string{task.Bootstrap}, settings)
	job.Check(err)
	return producer
}

func send(producer sarama.SyncProducer, series string, first, last int) (job.Ranges, error) {
	var messages []*sarama.ProducerMessage
	for i := first; i < last; i++ {
		messages = append(messages, &sarama.ProducerMessage{Topic: task.Name, Partition: int32(i) % task.Partitions,
			Key: sarama.StringEncoder(job.Key(series, i)), Value: sarama.StringEncoder(job.Value(series, i))})
	}
	err := producer.SendMessages(messages)
	ranges := job.Ranges{}
	for _, message := range messages {
		ranges.Add(message.Partition, message.Offset)
	}
	return ranges, err
}

func mustSend(producer sarama.SyncProducer, series string, first, last int) job.Ranges {
	ranges, err := send(producer, series, first, last)
	job.Check(err)
	return ranges
}

func transaction(producer sarama.SyncProducer, series string, end func() error) job.Ranges {
	job.Check(producer.BeginTxn())
	ranges := mustSend(producer, series, 0, 30)
	job.Check(end())
	return ranges
}

func runTransactions() {
	first := producer(tx)
	result.Committed = transaction(first, "committed", func() error {
		offsets := []*sarama.PartitionOffsetMetadata{{Partition: 0, Offset: 7, LeaderEpoch: -1}}
		job.Check(first.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{task.Name: offsets}, tx))
		return first.CommitTxn()
	})
	result.Aborted = transaction(first, "aborted", first.AbortTxn)
	second := producer(tx)
	result.Second = transaction(second, "second", second.CommitTxn)
	job.Check(first.BeginTxn())
	_, err := send(first, "fenced", 0, 3)
	if errors, ok := err.(sarama.ProducerErrors); ok {
		err = errors[0].Err
	}
	result.SetFenced(err)
	result.Third = transaction(second, "third", second.CommitTxn)
	job.Check(second.Close())
	first.Close() // its transaction cannot be ended
}

type reader struct {
	expected int
	done     context.CancelFunc
	read     chan *sarama.ConsumerMessage
}

func (*reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim runs once a partition, all at the same time.
func (r *reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message := <-claim.Messages():
			if message == nil {
				return nil
			}
			r.read <- message
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			session.Commit()
			return nil
		}
	}
}

func consume(expected int) {
	group, err := sarama.NewConsumerGroup([]string{task.Bootstrap}, task.Name+"-group", config())
	job.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &reader{expected: expected, done: cancel, read: make(chan *sarama.ConsumerMessage)}
	go func() {
		for len(result.Read) < expected {
			m := <-r.read
			result.AddRead(m.Partition, m.Offset, m.Key, m.Value)
		}
		time.Sleep(100 * time.Millisecond) // until the last message has been marked
		cancel()
	}()
	for ctx.Err() == nil {
		job.Check(group.Consume(ctx, []string{task.Name}, r))
	}
	job.Check(group.Close())
}

func committedOffsets(admin sarama.ClusterAdmin, group string) map[int32]int64 {
	fetched, err := admin.ListConsumerGroupOffsets(group, nil)
	job.Check(err)
	offsets := map[int32]int64{}
	for partition, block := range fetched.Blocks[task.Name] {
		offsets[partition] = block.Offset
	}
	return offsets
}

func main() {
	admin, err := sarama.NewClusterAdmin([]string{task.Bootstrap}, config())
	job.Check(err)
	detail := &sarama.TopicDetail{NumPartitions: task.Partitions, ReplicationFactor: task.Replication}
	job.Check(admin.CreateTopic(task.Name, detail, false))

	plain := producer("")
	for part := 0; part < 3; part++ {
		result.Plain = append(result.Plain, mustSend(plain, "plain", task.Records*part/3, task.Records*(part+1)/3))
	}
	job.Check(plain.Close())
	runTransactions()
	consume(task.Records + 90)
	result.GroupOffsets = committedOffsets(admin, task.Name+"-group")
	result.TransactionOffsets = committedOffsets(admin, tx)
	topics, err := admin.ListTopics()
	job.Check(err)
	_, result.TopicListed = topics[task.Name]
	groups, err := admin.ListConsumerGroups()
	job.Check(err)
	for group := range groups {
		result.AddGroup(task, group)
	}
	result.Print()
}
