"""The job of README.md with aiokafka."""

import asyncio

import job
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition


def common(task):
    return {"bootstrap_servers": task.bootstrap, "client_id": task.name}


async def new_producer(task, **settings):
    producer = AIOKafkaProducer(
        **common(task), enable_idempotence=True, max_batch_size=2000, linger_ms=5, **settings
    )
    await producer.start()
    return producer


async def send(task, producer, series, records):
    futures = []
    for i in records:
        partition, key, value = task.record(series, i)
        futures.append(await producer.send(task.name, value, key, partition=partition))
    offsets = {}
    for future in futures:
        metadata = await future
        job.extend(offsets, metadata.partition, metadata.offset)
    return offsets


async def transaction(task, producer, series, end, offsets=None):
    await producer.begin_transaction()
    ranges = await send(task, producer, series, range(30))
    if offsets:
        await producer.send_offsets_to_transaction(offsets, task.tx)
    await end()
    return ranges


async def fencing(task, producer):
    try:
        await producer.begin_transaction()
        await send(task, producer, "fenced", range(3))
        await producer.commit_transaction()
    except KafkaError as error:
        return type(error).__name__


async def run_transactions(task, result):
    first = await new_producer(task, transactional_id=task.tx)
    inside = {TopicPartition(task.name, 0): 7}
    result["committed"] = await transaction(task, first, "committed", first.commit_transaction, inside)
    result["aborted"] = await transaction(task, first, "aborted", first.abort_transaction)
    second = await new_producer(task, transactional_id=task.tx)
    result["second"] = await transaction(task, second, "second", second.commit_transaction)
    result["fenced"] = await fencing(task, first)
    result["third"] = await transaction(task, second, "third", second.commit_transaction)
    await second.stop()
    await first.stop()


async def new_consumer(task, group, *topics):
    settings = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = AIOKafkaConsumer(*topics, **common(task), **settings, isolation_level="read_committed")
    await consumer.start()
    return consumer


async def consume(task, count):
    consumer = await new_consumer(task, task.group, task.name)
    read = []
    while len(read) < count:
        for records in (await consumer.getmany(timeout_ms=1000)).values():
            read += [(r.partition, r.offset, r.key.decode(), r.value.decode()) for r in records]
    await consumer.commit({TopicPartition(task.name, p): end for p, end in job.next_offsets(read)})
    await consumer.stop()
    return read


async def committed_offsets(task, group):
    consumer = await new_consumer(task, group)
    found = {p: await consumer.committed(TopicPartition(task.name, p)) for p in range(task.partitions)}
    await consumer.stop()
    return {partition: offset for partition, offset in found.items() if offset is not None}


async def main():
    task = job.Task()
    result = {}
    admin = AIOKafkaAdminClient(**common(task))
    await admin.start()
    await admin.create_topics([NewTopic(task.name, task.partitions, task.replication)])

    plain = await new_producer(task)
    result["plain"] = [await send(task, plain, "plain", part) for part in task.parts()]
    await plain.stop()
    await run_transactions(task, result)
    result["read"] = await consume(task, task.records + 90)
    result["group_offsets"] = await committed_offsets(task, task.group)
    result["transaction_offsets"] = await committed_offsets(task, task.tx)
    result["topic_listed"] = task.name in await admin.list_topics()
    result["groups"] = task.groups_of(row[0] for row in await admin.list_consumer_groups())
    await admin.close()
    job.finish(result)


if __name__ == "__main__":
    asyncio.run(main())
