#include "tests/support/vectors.hpp"

#include <boost/json.hpp>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/support/json.hpp"

namespace support {
namespace {

using boost::json::object;

const std::string folder = TEST_VECTORS;

std::string text(const object& row, std::string_view name) {
  const auto* value = row.if_contains(name);
  return value == nullptr ? std::string() : std::string(value->as_string());
}

template <typename T>
T number(const object& row, std::string_view name) {
  return row.at(name).to_number<T>();
}

template <typename Row, typename Read>
std::vector<Row> read_rows(const std::string& file, Read read) {
  std::vector<Row> rows;
  const auto json = read_json(folder + "/" + file);
  for (const auto& row : json.as_array()) rows.push_back(read(row.as_object()));
  return rows;
}

}  // namespace

std::vector<GoldenMessage> golden_messages() {
  return read_rows<GoldenMessage>("golden_messages.json", [](const object& row) {
    const auto api = text(row, "api");
    const auto version = number<std::int16_t>(row, "version");
    const auto after = text(row, "frame_after_hex");
    return GoldenMessage{api,
                         number<std::int16_t>(row, "api_key"),
                         version,
                         text(row, "kind") == "request",
                         number<std::int16_t>(row, "header_version"),
                         from_hex(text(row, "frame_hex")),
                         from_hex(after.empty() ? text(row, "frame_hex") : after),
                         api + " v" + std::to_string(version) + " " + text(row, "kind") + ": " + text(row, "note")};
  });
}

std::vector<GoldenBatch> golden_batches() {
  return read_rows<GoldenBatch>("golden_batches.json", [](const object& row) {
    return GoldenBatch{text(row, "name"),
                       from_hex(text(row, "in_hex")),
                       number<std::uint32_t>(row, "region"),
                       number<std::int64_t>(row, "pid_in"),
                       number<std::int64_t>(row, "pid_out"),
                       from_hex(text(row, "out_hex"))};
  });
}

std::vector<GoldenClusterId> golden_cluster_ids() {
  return read_rows<GoldenClusterId>("cluster_ids.json", [](const object& row) {
    GoldenClusterId id{text(row, "cluster_id"),
                       std::stoull(text(row, "msb"), nullptr, 16),
                       std::stoull(text(row, "lsb"), nullptr, 16),
                       number<std::uint32_t>(row, "region"),
                       {}};
    for (const auto& [pid, mapped] : row.at("mapped").as_object())
      id.mapped[std::stoll(std::string(pid))] = std::stoll(std::string(mapped.as_string()));
    return id;
  });
}

Bytes frame(std::string_view id) {
  std::ifstream file(folder + "/frames.tsv");
  for (std::string line; std::getline(file, line);) {
    std::istringstream columns(line);
    std::string name, what, size, hex;
    std::getline(columns, name, '\t');
    std::getline(columns, what, '\t');
    std::getline(columns, size, '\t');
    std::getline(columns, hex, '\t');
    if (name == id) return from_hex(hex);
  }
  throw std::runtime_error("no such frame: " + std::string(id));
}

}  // namespace support
