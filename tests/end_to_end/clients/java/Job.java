import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** The job of README.md with Kafka's own client, of whatever version is on the class path. */
class Job {
  static final String SERIALIZERS = "org.apache.kafka.common.serialization.";

  final String name;
  final String bootstrap;
  final String groupProtocol;
  final int partitions;
  final int replication;
  final int records;
  final Map<String, Object> result = new TreeMap<>();

  Job(JsonNode job) {
    name = job.get("name").asText();
    bootstrap = job.get("bootstrap").asText();
    groupProtocol = job.path("group_protocol").asText("classic");
    partitions = job.get("partitions").asInt();
    replication = job.get("replication").asInt();
    records = job.get("records").asInt();
  }

  Properties properties(String... pairs) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("client.id", name);
    for (int i = 0; i < pairs.length; i += 2) properties.put(pairs[i], pairs[i + 1]);
    return properties;
  }

  KafkaProducer<String, String> producer(String... pairs) {
    Properties properties = properties(pairs);
    properties.put("key.serializer", SERIALIZERS + "StringSerializer");
    properties.put("value.serializer", SERIALIZERS + "StringSerializer");
    properties.put("batch.size", "2000");
    properties.put("linger.ms", "5");
    return new KafkaProducer<>(properties);
  }

  KafkaConsumer<String, String> consumer(String group) {
    Properties properties = properties("group.id", group, "isolation.level", "read_committed");
    properties.put("key.deserializer", SERIALIZERS + "StringDeserializer");
    properties.put("value.deserializer", SERIALIZERS + "StringDeserializer");
    properties.put("auto.offset.reset", "earliest");
    properties.put("enable.auto.commit", "false");
    if (!groupProtocol.equals("classic")) properties.put("group.protocol", groupProtocol);
    return new KafkaConsumer<>(properties);
  }

  void createTopic() throws Exception {
    try (Admin admin = Admin.create(properties())) {
      admin.createTopics(List.of(new NewTopic(name, partitions, (short) replication))).all().get();
    }
  }

  /** Records {@code first} to {@code last} of a series, round the partitions: where each partition's begin and end. */
  Map<Integer, long[]> send(KafkaProducer<String, String> producer, String series, int first, int last)
      throws Exception {
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    for (int i = first; i < last; i++) {
      String value = series + " " + i + " " + "x".repeat(i % 200);
      sent.add(producer.send(new ProducerRecord<>(name, i % partitions, series + "-" + i, value)));
    }
    producer.flush();
    Map<Integer, long[]> offsets = new TreeMap<>();
    for (Future<RecordMetadata> future : sent) {
      RecordMetadata metadata = future.get();
      long[] range = offsets.computeIfAbsent(metadata.partition(), p -> new long[] {metadata.offset(), 0});
      range[1] = metadata.offset();
    }
    return offsets;
  }

  void produceIdempotently() throws Exception {
    try (KafkaProducer<String, String> producer = producer("enable.idempotence", "true")) {
      List<Object> offsets = new ArrayList<>();
      for (int part = 0; part < 3; part++) {
        offsets.add(send(producer, "plain", records * part / 3, records * (part + 1) / 3));
      }
      result.put("plain", offsets);
    }
  }

  void runTransactions() throws Exception {
    try (KafkaProducer<String, String> first = producer("transactional.id", name + "-tx")) {
      first.initTransactions();
      first.beginTransaction();
      result.put("committed", send(first, "committed", 0, 30));
      first.sendOffsetsToTransaction(
          Map.of(new TopicPartition(name, 0), new OffsetAndMetadata(7)), new ConsumerGroupMetadata(name + "-tx"));
      first.commitTransaction();
      first.beginTransaction();
      result.put("aborted", send(first, "aborted", 0, 30));
      first.abortTransaction();

      try (KafkaProducer<String, String> second = producer("transactional.id", name + "-tx")) {
        second.initTransactions();
        second.beginTransaction();
        result.put("second", send(second, "second", 0, 30));
        second.commitTransaction();
        result.put("fenced", fencing(first));
        second.beginTransaction();
        result.put("third", send(second, "third", 0, 30));
        second.commitTransaction();
      }
    }
  }

  String fencing(KafkaProducer<String, String> producer) throws Exception {
    try {
      producer.beginTransaction();
      send(producer, "fenced", 0, 3);
      producer.commitTransaction();
      return null;
    } catch (KafkaException error) {
      return error.getClass().getSimpleName();
    } catch (java.util.concurrent.ExecutionException error) {
      return error.getCause().getClass().getSimpleName();
    }
  }

  void consume(int expected) {
    List<ConsumerRecord<String, String>> read = new ArrayList<>();
    try (KafkaConsumer<String, String> consumer = consumer(name + "-group")) {
      consumer.subscribe(List.of(name));
      while (read.size() < expected) consumer.poll(Duration.ofSeconds(1)).forEach(read::add);
      Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();  // not the position: markers move it on, some time
      read.forEach(r -> next.merge(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1),
          (a, b) -> a.offset() > b.offset() ? a : b));
      consumer.commitSync(next);
    }
    read.sort(Comparator.comparing((ConsumerRecord<String, String> r) -> r.partition()).thenComparing(r -> r.offset()));
    result.put("read", read.stream().map(r -> List.of(r.partition(), r.offset(), r.key(), r.value())).toList());
  }

  Map<Integer, Long> committedOffsets(String group) {
    Map<Integer, Long> offsets = new TreeMap<>();
    Set<TopicPartition> asked = new HashSet<>();
    for (int p = 0; p < partitions; p++) asked.add(new TopicPartition(name, p));
    try (KafkaConsumer<String, String> consumer = consumer(group)) {
      consumer.committed(asked).forEach((p, o) -> { if (o != null) offsets.put(p.partition(), o.offset()); });
    }
    return offsets;
  }

  void list() throws Exception {
    try (Admin admin = Admin.create(properties())) {
      result.put("topic_listed", admin.listTopics().names().get().contains(name));
      String[] groups = admin.listConsumerGroups().all().get().stream().map(g -> g.groupId())
          .filter(g -> g.startsWith(name)).map(g -> g.substring(name.length())).toArray(String[]::new);
      Arrays.sort(groups);
      result.put("groups", groups);
    }
  }

  public static void main(String[] arguments) throws Exception {
    ObjectMapper json = new ObjectMapper();
    Job job = new Job(json.readTree(arguments[0]));
    job.createTopic();
    job.produceIdempotently();
    job.runTransactions();
    job.consume(job.records + 90);
    job.result.put("group_offsets", job.committedOffsets(job.name + "-group"));
    job.result.put("transaction_offsets", job.committedOffsets(job.name + "-tx"));
    job.list();
    System.out.println(json.writeValueAsString(job.result));
  }
}
