"""The job of README.md with kafka-python."""

import contextlib
import re

import job
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

TIMEOUT = 60  # seconds


def common(task):
    return {"bootstrap_servers": task.bootstrap, "client_id": task.name}


def new_producer(task, **settings):
    return KafkaProducer(**common(task), enable_idempotence=True, batch_size=2000, linger_ms=5, **settings)


def new_consumer(task, group, *topics):
    settings = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return KafkaConsumer(*topics, **common(task), **settings, isolation_level="read_committed")


def send(task, producer, series, records):
    futures = []
    for i in records:
        partition, key, value = task.record(series, i)
        futures.append(producer.send(task.name, value, key, partition=partition))
    producer.flush(TIMEOUT)
    offsets = {}
    for future in futures:
        metadata = future.get(TIMEOUT)
        job.extend(offsets, metadata.partition, metadata.offset)
    return offsets


def transaction(task, producer, series, end, offsets=None):
    producer.begin_transaction()
    ranges = send(task, producer, series, range(30))
    if offsets:
        producer.send_offsets_to_transaction(offsets, task.tx)
    end()
    return ranges


def fencing(task, producer):
    """What the producer says from then on; what the records are told is one of two errors, as time decides."""
    producer.begin_transaction()
    with contextlib.suppress(KafkaError):
        send(task, producer, "fenced", range(3))
    try:
        producer.commit_transaction()
    except KafkaError as error:
        return re.search(r"\w*(Fenced|Epoch)\w*|$", repr(error))[0]


def run_transactions(task, result):
    first = new_producer(task, transactional_id=task.tx)
    first.init_transactions()
    inside = {TopicPartition(task.name, 0): OffsetAndMetadata(7, "", -1)}
    result["committed"] = transaction(task, first, "committed", first.commit_transaction, inside)
    result["aborted"] = transaction(task, first, "aborted", first.abort_transaction)
    second = new_producer(task, transactional_id=task.tx)
    second.init_transactions()
    result["second"] = transaction(task, second, "second", second.commit_transaction)
    result["fenced"] = fencing(task, first)
    result["third"] = transaction(task, second, "third", second.commit_transaction)
    second.close()
    first.close(timeout=0)


def consume(task, count):
    consumer = new_consumer(task, task.group, task.name)
    read = []
    while len(read) < count:
        for records in consumer.poll(1000).values():
            read += [(r.partition, r.offset, r.key.decode(), r.value.decode()) for r in records]
    ends = {TopicPartition(task.name, p): OffsetAndMetadata(end, "", -1) for p, end in job.next_offsets(read)}
    consumer.commit(ends)
    consumer.close()
    return read


def committed_offsets(task, group):
    consumer = new_consumer(task, group)
    found = {p: consumer.committed(TopicPartition(task.name, p)) for p in range(task.partitions)}
    consumer.close()
    return {partition: offset for partition, offset in found.items() if offset is not None}


def main():
    task = job.Task()
    result = {}
    admin = KafkaAdminClient(**common(task))
    admin.create_topics([NewTopic(task.name, task.partitions, task.replication)])

    plain = new_producer(task)
    result["plain"] = [send(task, plain, "plain", part) for part in task.parts()]
    plain.close()
    run_transactions(task, result)
    result["read"] = consume(task, task.records + 90)
    result["group_offsets"] = committed_offsets(task, task.group)
    result["transaction_offsets"] = committed_offsets(task, task.tx)
    result["topic_listed"] = task.name in admin.list_topics()
    listed = admin.list_consumer_groups() if hasattr(admin, "list_consumer_groups") else admin.list_groups()
    result["groups"] = task.groups_of(row["group_id"] if isinstance(row, dict) else row[0] for row in listed)
    admin.close()
    job.finish(result)


if __name__ == "__main__":
    main()
