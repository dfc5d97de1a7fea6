// The job of README.md with segmentio/kafka-go, which has no idempotence and no transactions: its plain part alone.
package main

import (
	"context"
	"time"

	"clients/job"

	"github.com/segmentio/kafka-go"
)

var (
	ctx    = context.Background()
	result job.Result
	task   = job.Parse()
	client = &kafka.Client{Addr: kafka.TCP(task.Bootstrap), Transport: transport, Timeout: time.Minute}
	// One for all: each would keep connections of its own.
	transport = &kafka.Transport{ClientID: task.Name}
)

func balance(message kafka.Message, partitions ...int) int {
	return message.WriterData.(int) % len(partitions)
}

// The writer tells no offsets, so there are none in this result.
func send(writer *kafka.Writer, first, last int) {
	var messages []kafka.Message
	for i := first; i < last; i++ {
		messages = append(messages, kafka.Message{WriterData: i, Key: []byte(job.Key("plain", i)),
			Value: []byte(job.Value("plain", i))})
	}
	job.Check(writer.WriteMessages(ctx, messages...))
}

func consume(expected int) {
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{task.Bootstrap}, Topic: task.Name,
		GroupID: task.Name + "-group", StartOffset: kafka.FirstOffset, IsolationLevel: kafka.ReadCommitted,
		MaxWait: time.Second, Dialer: &kafka.Dialer{ClientID: task.Name, Timeout: time.Minute}})
	var last []kafka.Message
	for len(result.Read) < expected {
		message, err := reader.FetchMessage(ctx)
		job.Check(err)
		result.AddRead(int32(message.Partition), message.Offset, message.Key, message.Value)
		last = append(last, message)
	}
	job.Check(reader.CommitMessages(ctx, last...))
	job.Check(reader.Close())
}

func committedOffsets(group string) map[int32]int64 {
	asked := map[string][]int{task.Name: {}}
	for partition := 0; partition < int(task.Partitions); partition++ {
		asked[task.Name] = append(asked[task.Name], partition)
	}
	fetched, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: asked})
	job.Check(err)
	offsets := map[int32]int64{}
	for _, partition := range fetched.Topics[task.Name] {
		offsets[int32(partition.Partition)] = partition.CommittedOffset
	}
	return offsets
}

func main() {
	created, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: task.Name, NumPartitions: int(task.Partitions), ReplicationFactor: int(task.Replication)}}})
	job.Check(err)
	job.Check(created.Errors[task.Name])

	writer := &kafka.Writer{Addr: client.Addr, Topic: task.Name, Transport: transport, BatchSize: 20,
		BatchTimeout: 5 * time.Millisecond, RequiredAcks: kafka.RequireAll, Balancer: kafka.BalancerFunc(balance)}
	for part := 0; part < 3; part++ {
		send(writer, task.Records*part/3, task.Records*(part+1)/3)
	}
	job.Check(writer.Close())
	consume(task.Records)
	result.GroupOffsets = committedOffsets(task.Name + "-group")
	metadata, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	job.Check(err)
	for _, topic := range metadata.Topics {
		result.TopicListed = result.TopicListed || topic.Name == task.Name
	}
	groups, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	job.Check(err)
	for _, group := range groups.Groups {
		result.AddGroup(task, group.GroupID)
	}
	result.Print()
}
