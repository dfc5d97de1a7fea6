import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ConcurrentTransactionsException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Kafka's own client with transactions; prints a line for each thing that a test wants to know.
 *
 *     java -cp 'JARS/*' Transactions.java COMMAND BOOTSTRAP TOPIC ID
 */
public class Transactions {
  static final int TRANSACTIONS = 9;
  static final int RECORDS = 10; // of each

  static String bootstrap;
  static String topic;
  static String id;

  public static void main(String[] args) throws Exception {
    bootstrap = args[1];
    topic = args[2];
    id = args[3];
    switch (args[0]) {
      case "load" -> load();
      case "fence" -> fence();
      case "admin" -> admin();
      case "consume" -> consume();
      default -> throw new IllegalArgumentException(args[0]);
    }
  }

  static Properties properties() {
    var properties = new Properties();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
    properties.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
    properties.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
    properties.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
    return properties;
  }

  static KafkaProducer<String, String> producer(String transactionalId) {
    var properties = properties();
    if (!transactionalId.isEmpty()) properties.put("transactional.id", transactionalId);
    return new KafkaProducer<>(properties);
  }

  static void send(KafkaProducer<String, String> producer, int count, String value) {
    for (int i = 0; i < count; ++i) producer.send(new ProducerRecord<>(topic, i % 2, null, value));
    producer.flush();
  }

  /** Every third transaction is aborted, every second one commits offsets of a group as well. */
  static void load() throws Exception {
    try (var producer = producer(id);
        var consumer = new KafkaConsumer<String, String>(group(id))) {
      producer.initTransactions();
      for (int i = 1; i <= TRANSACTIONS; ++i) {
        boolean isAborted = i % 3 == 0;
        producer.beginTransaction();
        send(producer, RECORDS, isAborted ? "aborted" : "committed");
        if (i % 2 == 0) {
          var offsets = Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(isAborted ? 1000 + i : i));
          producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        }
        if (isAborted) producer.abortTransaction();
        else producer.commitTransaction();
      }
      var committed = consumer.committed(Set.of(new TopicPartition(topic, 0)));
      System.out.println("offset " + committed.get(new TopicPartition(topic, 0)).offset());
    }
    // One without transactions: idempotent by default.
    try (var producer = producer("")) {
      send(producer, RECORDS, "idempotent");
    }
  }

  static Properties group(String name) {
    var properties = properties();
    properties.put("group.id", name);
    properties.put("isolation.level", "read_committed");
    properties.put("auto.offset.reset", "earliest");
    properties.put("enable.auto.commit", "false");
    return properties;
  }

  static void fence() {
    try (var first = producer(id);
        var second = producer(id)) {
      first.initTransactions();
      first.beginTransaction();
      send(first, RECORDS, "fenced");
      second.initTransactions(); // aborts what the first has open
      second.beginTransaction();
      send(second, RECORDS, "second");
      try {
        first.commitTransaction();
        System.out.println("first not fenced");
      } catch (ProducerFencedException | InvalidProducerEpochException error) {
        System.out.println("first fenced");
      }
      second.commitTransaction();
      System.out.println("second committed");
    }
  }

  /** What an operator sees of an open transaction, and its end. */
  static void admin() throws Exception {
    var partition = new TopicPartition(topic, 0);
    try (var admin = Admin.create(properties());
        var producer = producer(id)) {
      producer.initTransactions();
      producer.beginTransaction();
      send(producer, RECORDS, "hanging");
      ProducerState active = null;
      for (var state : admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers())
        if (state.currentTransactionStartOffset().isPresent()) active = state;
      System.out.println("active " + active.producerId());
      System.out.println("described " + admin.describeTransactions(List.of(id)).description(id).get().producerId());
      var filter = new ListTransactionsOptions().filterProducerIds(Set.of(active.producerId()));
      List<String> listed = new ArrayList<>();
      for (var listing : admin.listTransactions(filter).all().get())
        listed.add(listing.transactionalId() + "=" + listing.producerId());
      System.out.println("listed " + listed);
      for (int index = 0; index < 2; ++index)
        admin.abortTransaction(new AbortTransactionSpec(new TopicPartition(topic, index), active.producerId(),
            (short) active.producerEpoch(), active.coordinatorEpoch().orElse(0))).all().get();
      for (var state : admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers())
        if (state.producerId() == active.producerId())
          System.out.println("open " + state.currentTransactionStartOffset().isPresent());
      System.out.println("refenced " + fenceWith(admin));
    }
  }

  /** The first call ends the transaction, and until it has ended older clients are told to come back. */
  static long fenceWith(Admin admin) throws Exception {
    for (;;) {
      try {
        return admin.fenceProducers(List.of(id)).producerId(id).get();
      } catch (ExecutionException error) {
        if (!(error.getCause() instanceof ConcurrentTransactionsException)) throw error;
      }
    }
  }

  /** Reads both partitions to their ends, as they are for read_committed. */
  static void consume() {
    var partitions = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
    try (var consumer = new KafkaConsumer<String, String>(group(id + "-reader"))) {
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      var ends = consumer.endOffsets(partitions);
      var counts = new java.util.TreeMap<String, Integer>();
      while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition)))
        for (var record : consumer.poll(Duration.ofSeconds(1))) counts.merge(record.value(), 1, Integer::sum);
      System.out.println("read " + counts);
    }
  }
}
