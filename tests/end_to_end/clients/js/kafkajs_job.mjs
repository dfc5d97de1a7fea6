// The job of README.md with kafkajs.
import {Kafka, logLevel} from 'kafkajs';
import {finish, nextOffsets, ownGroups, plainRecords, ranges, records, task} from './job.mjs';

const kafka = new Kafka({clientId: task.name, brokers: [task.bootstrap], logLevel: logLevel.NOTHING});
const result = {};

async function send(producer, messages) {
  const answers = await producer.send({topic: task.name, messages, acks: -1});
  return ranges(messages, Object.fromEntries(answers.map((a) => [a.partition, a.baseOffset])));
}

async function newProducer(transactionalId) {
  const producer = kafka.producer({idempotent: true, maxInFlightRequests: 1, transactionalId});
  await producer.connect();
  return producer;
}

async function transaction(producer, series, end, offsets) {
  const transaction = await producer.transaction();
  const sent = await send(transaction, records(series, 0, 30));
  if (offsets) await transaction.sendOffsets(offsets);
  await transaction[end]();
  return sent;
}

async function fencing(producer) {
  try {
    const transaction = await producer.transaction();
    await send(transaction, records('fenced', 0, 3));
    await transaction.commit();
    return null;
  } catch (error) {
    return error.type ?? error.name;
  }
}

async function runTransactions() {
  const first = await newProducer(task.tx);
  const offsets = {topics: [{topic: task.name, partitions: [{partition: 0, offset: '7'}]}]};
  const inside = {consumerGroupId: task.tx, ...offsets};
  result.committed = await transaction(first, 'committed', 'commit', inside);
  result.aborted = await transaction(first, 'aborted', 'abort');
  const second = await newProducer(task.tx);
  result.second = await transaction(second, 'second', 'commit');
  result.fenced = await fencing(first);
  result.third = await transaction(second, 'third', 'commit');
  await second.disconnect();
  await first.disconnect();
}

async function consume(count) {
  const consumer = kafka.consumer({groupId: task.group, readUncommitted: false});
  await consumer.connect();
  await consumer.subscribe({topic: task.name, fromBeginning: true});
  const read = [];
  await new Promise((resolve) =>
    consumer.run({
      autoCommit: false,
      eachMessage: async ({partition, message}) => {
        read.push([partition, Number(message.offset), message.key.toString(), message.value.toString()]);
        if (read.length >= count) resolve();
      },
    }),
  );
  const ends = Object.entries(nextOffsets(read));
  await consumer.commitOffsets(ends.map(([p, end]) => ({topic: task.name, partition: Number(p), offset: `${end}`})));
  await consumer.disconnect();
  return read;
}

async function committedOffsets(admin, groupId) {
  const [{partitions}] = await admin.fetchOffsets({groupId, topics: [task.name]});
  const known = partitions.filter(({offset}) => Number(offset) >= 0);
  return Object.fromEntries(known.map(({partition, offset}) => [partition, Number(offset)]));
}

const admin = kafka.admin();
await admin.connect();
const topic = {topic: task.name, numPartitions: task.partitions, replicationFactor: task.replication};
await admin.createTopics({topics: [topic], waitForLeaders: true});
const plain = await newProducer();
result.plain = [];
for (const part of plainRecords()) result.plain.push(await send(plain, part));
await plain.disconnect();
await runTransactions();
result.read = await consume(task.records + 90);
result.group_offsets = await committedOffsets(admin, task.group);
result.transaction_offsets = await committedOffsets(admin, task.tx);
result.topic_listed = (await admin.listTopics()).includes(task.name);
result.groups = ownGroups((await admin.listGroups()).groups.map((group) => group.groupId));
await admin.disconnect();
finish(result);
