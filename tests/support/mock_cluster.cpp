#include "tests/support/mock_cluster.hpp"

#include <string_view>

namespace support {

MockCluster::MockCluster(int brokers) : brokers_(brokers) {
  auto* conf = rd_kafka_conf_new();
  rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
  client_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf, nullptr, 0));
  cluster_.reset(rd_kafka_mock_cluster_new(client_.get(), brokers));
  const std::string_view all = rd_kafka_mock_cluster_bootstraps(cluster_.get());
  address_ = parse_address(all.substr(0, all.find(','))).value();
}

void MockCluster::create_topic(const std::string& topic, int partitions) {
  rd_kafka_mock_topic_create(cluster_.get(), topic.c_str(), partitions, 1);
}

void MockCluster::set_leader(const std::string& topic, int partition, int broker) {
  rd_kafka_mock_partition_set_leader(cluster_.get(), topic.c_str(), partition, broker);
}

void MockCluster::push_errors(std::int16_t api_key, std::initializer_list<rd_kafka_resp_err_t> errors) {
  rd_kafka_mock_push_request_errors_array(cluster_.get(), api_key, errors.size(), errors.begin());
}

}  // namespace support
