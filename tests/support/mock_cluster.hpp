#pragma once
#include <librdkafka/rdkafka.h>
// Behind rdkafka.h, which it does not include.
#include <librdkafka/rdkafka_mock.h>

#include <initializer_list>
#include <memory>
#include <string>

#include "tests/support/kafka_connection.hpp"

namespace support {

// A Kafka cluster inside this process, on ports of loopback: librdkafka's mock. It stores what it is sent and hands it
// out again, but is no judge: it checks neither checksums nor sequences.
class MockCluster {
 public:
  explicit MockCluster(int brokers);

  // Of its first broker.
  const Address& address() const { return address_; }
  // The brokers are numbered from 1.
  int brokers() const { return brokers_; }
  void create_topic(const std::string& topic, int partitions);
  void set_leader(const std::string& topic, int partition, int broker);
  // How the next requests of an API are answered; RD_KAFKA_RESP_ERR_NO_ERROR: as usual.
  void push_errors(std::int16_t api_key, std::initializer_list<rd_kafka_resp_err_t> errors);

 private:
  struct Destroy {
    void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
    void operator()(rd_kafka_mock_cluster_t* cluster) const { rd_kafka_mock_cluster_destroy(cluster); }
  };

  int brokers_;
  std::unique_ptr<rd_kafka_t, Destroy> client_;
  std::unique_ptr<rd_kafka_mock_cluster_t, Destroy> cluster_;
  Address address_;
};

}  // namespace support
