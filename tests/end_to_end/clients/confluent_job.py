"""The job of README.md with confluent-kafka, which brings librdkafka with it."""

import contextlib

import job
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT = 60  # seconds


def common(task):
    return {"bootstrap.servers": task.bootstrap, "client.id": task.name}


def new_producer(task, **properties):
    settings = {name.replace("_", "."): value for name, value in properties.items()}
    return Producer({**common(task), "enable.idempotence": True, "batch.num.messages": 20, "linger.ms": 5, **settings})


def new_consumer(task, group):
    settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    if task.group_protocol != "classic":
        settings["group.protocol"] = task.group_protocol
    return Consumer({**common(task), **settings, "isolation.level": "read_committed"})


def send(task, producer, series, records):
    """Raises the first error of a record."""
    offsets, errors = {}, []

    def delivered(error, message):
        if error:
            errors.append(error)
        else:
            job.extend(offsets, message.partition(), message.offset())

    for i in records:
        partition, key, value = task.record(series, i)
        producer.produce(task.name, value, key, partition, on_delivery=delivered)
    producer.flush(TIMEOUT)
    if errors:
        raise KafkaException(errors[0])
    return offsets


def transaction(task, producer, series, end, group=None):
    producer.begin_transaction()
    offsets = send(task, producer, series, range(30))
    if group:
        metadata = group.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(task.name, 0, 7)], metadata, TIMEOUT)
    end(TIMEOUT)
    return offsets


def fencing(task, producer):
    """What the producer says from then on: records only say that they have been thrown away."""
    with contextlib.suppress(KafkaException):
        producer.begin_transaction()
        for i in range(3):
            partition, key, value = task.record("fenced", i)
            producer.produce(task.name, value, key, partition)  # a callback would run with the fatal error raised already
        producer.flush(TIMEOUT)
    try:
        producer.commit_transaction(TIMEOUT)
    except KafkaException as error:
        return error.args[0].name()


def run_transactions(task, result):
    first = new_producer(task, transactional_id=task.tx)
    first.init_transactions(TIMEOUT)
    group = new_consumer(task, task.tx)
    result["committed"] = transaction(task, first, "committed", first.commit_transaction, group)
    group.close()
    result["aborted"] = transaction(task, first, "aborted", lambda timeout: first.abort_transaction(timeout))
    second = new_producer(task, transactional_id=task.tx)
    second.init_transactions(TIMEOUT)
    result["second"] = transaction(task, second, "second", second.commit_transaction)
    result["fenced"] = fencing(task, first)
    result["third"] = transaction(task, second, "third", second.commit_transaction)


def consume(task, count):
    consumer = new_consumer(task, task.group)
    consumer.subscribe([task.name])
    read = []
    while len(read) < count:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        read.append((message.partition(), message.offset(), message.key().decode(), message.value().decode()))
    consumer.commit(offsets=[TopicPartition(task.name, *row) for row in job.next_offsets(read)], asynchronous=False)
    consumer.close()
    return read


def committed_offsets(task, group):
    consumer = new_consumer(task, group)
    asked = [TopicPartition(task.name, partition) for partition in range(task.partitions)]
    found = {row.partition: row.offset for row in consumer.committed(asked, TIMEOUT) if row.offset >= 0}
    consumer.close()
    return found


def main():
    task = job.Task()
    result = {}
    admin = AdminClient(common(task))
    topic = NewTopic(task.name, num_partitions=task.partitions, replication_factor=task.replication)
    admin.create_topics([topic])[task.name].result()

    plain = new_producer(task)
    result["plain"] = [send(task, plain, "plain", part) for part in task.parts()]
    run_transactions(task, result)
    result["read"] = consume(task, task.records + 90)
    result["group_offsets"] = committed_offsets(task, task.group)
    result["transaction_offsets"] = committed_offsets(task, task.tx)
    result["topic_listed"] = task.name in admin.list_topics(timeout=TIMEOUT).topics
    result["groups"] = task.groups_of(group.group_id for group in admin.list_consumer_groups().result().valid)
    job.finish(result)


if __name__ == "__main__":
    main()
