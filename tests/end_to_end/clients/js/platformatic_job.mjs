// The job of README.md with @platformatic/kafka. Its first InitProducerId names producer 0, so the broker fences the
// second producer of a transactional id and not the first.
import {Admin, Consumer, Producer, stringDeserializers, stringSerializers} from '@platformatic/kafka';
import {finish, nextOffsets, ownGroups, plainRecords, ranges, records, task} from './job.mjs';

const READ_COMMITTED = 1;
const client = {clientId: task.name, bootstrapBrokers: [task.bootstrap]};
const result = {};

async function send(producer, messages) {
  const answer = await producer.send({messages: messages.map((message) => ({topic: task.name, ...message})), acks: -1});
  return ranges(messages, Object.fromEntries(answer.offsets.map(({partition, offset}) => [partition, offset])));
}

const newProducer = (transactionalId) =>
  new Producer({...client, serializers: stringSerializers, idempotent: true, transactionalId});
const newConsumer = (groupId) => new Consumer({...client, groupId, deserializers: stringDeserializers});

async function transaction(producer, series, end, group) {
  const transaction = await producer.beginTransaction();
  const sent = await send(transaction, records(series, 0, 30));
  if (group) { // what is committed is the offset behind this message
    await transaction.addConsumer(group);
    const metadata = {consumer: group};
    await transaction.addOffset({topic: task.name, partition: 0, offset: 6n, metadata});
  }
  await transaction[end]();
  return sent;
}

// The name that Kafka gives it, wherever it is in what was thrown.
function protocolError(error) {
  return error.apiId ?? [error.cause, ...(error.errors ?? [])].filter(Boolean).map(protocolError).find(Boolean);
}

async function runTransactions() {
  const first = newProducer(task.tx);
  const group = newConsumer(task.tx);
  await group.joinGroup();
  result.committed = await transaction(first, 'committed', 'commit', group);
  await group.close();
  result.aborted = await transaction(first, 'aborted', 'abort');
  do {
    const second = newProducer(task.tx);
    result.fenced = await transaction(second, 'second', 'commit').catch((error) => protocolError(error) ?? error.code);
    await second.close(true);
  } while (result.fenced === 'CONCURRENT_TRANSACTIONS'); // the abort is not through yet, and it does not try again itself
  result.third = await transaction(first, 'third', 'commit');
  await first.close();
}

async function consume(count) {
  const consumer = newConsumer(task.group);
  const options = {topics: [task.name], mode: 'earliest', autocommit: false, isolationLevel: READ_COMMITTED};
  const stream = await consumer.consume(options);
  const read = [];
  for await (const message of stream) {
    read.push([message.partition, Number(message.offset), message.key, message.value]);
    if (read.length >= count) break;
  }
  const ends = Object.entries(nextOffsets(read));
  const offsets = ends.map(([p, end]) => ({topic: task.name, partition: +p, offset: BigInt(end), leaderEpoch: -1}));
  await consumer.commit({offsets});
  await consumer.close(true);
  return read;
}

async function committedOffsets(admin, group) {
  const [{topics}] = await admin.listConsumerGroupOffsets({groups: [group]});
  const partitions = topics.find(({name}) => name === task.name)?.partitions ?? [];
  return Object.fromEntries(partitions.map((p) => [p.partitionIndex, Number(p.committedOffset)]));
}

const admin = new Admin(client);
await admin.createTopics({topics: [task.name], partitions: task.partitions, replicas: task.replication});
const plain = newProducer();
result.plain = [];
for (const part of plainRecords()) result.plain.push(await send(plain, part));
await plain.close();
await runTransactions();
result.read = await consume(task.records + 60);
result.group_offsets = await committedOffsets(admin, task.group);
result.transaction_offsets = await committedOffsets(admin, task.tx);
result.topic_listed = (await admin.listTopics()).includes(task.name);
result.groups = ownGroups([...(await admin.listGroups()).keys()]);
await admin.close();
finish(result);
