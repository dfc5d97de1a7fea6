package main

import (
	"clients/job"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commitOffsets sends AddOffsetsToTxn and TxnOffsetCommit of the group that is named as the transactional id.
func commitOffsets(client *kgo.Client, producerID int64, epoch int16, offsets kadm.Offsets) error {
	described, err := kadm.NewClient(client).ListTopics(ctx, task.Name)
	job.Check(err)
	topicID := described[task.Name].ID

	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = tx, producerID, epoch, tx
	added, err := add.RequestWith(ctx, client)
	job.Check(err)
	if err := kerr.ErrorForCode(added.ErrorCode); err != nil {
		return err
	}

	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = tx, producerID, epoch, tx
	offsets.Each(func(offset kadm.Offset) {
		partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		partition.Partition, partition.Offset = offset.Partition, offset.At
		topic := kmsg.NewTxnOffsetCommitRequestTopic()
		topic.Topic, topic.TopicID = offset.Topic, topicID // one of them counts, by the version
		topic.Partitions = append(topic.Partitions, partition)
		commit.Topics = append(commit.Topics, topic)
	})
	committed, err := commit.RequestWith(ctx, client)
	job.Check(err)
	return kerr.ErrorForCode(committed.Topics[0].Partitions[0].ErrorCode)
}
