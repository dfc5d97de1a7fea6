#include "codec/api_versions.hpp"

#include <algorithm>

#include "codec/frame.hpp"
#include "codec/splice.hpp"
#include "codec/walker.hpp"
#include "codec/writer.hpp"

namespace codec {
namespace {

using boost::endian::big_int16_t;
using Bytes = std::span<std::byte>;

struct Entry {
  std::int16_t key = 0;
  Bytes min, max;
};

// False: nothing is left that both the broker and the proxy speak.
bool clamp(const Entry& entry) {
  const auto* api = find_api(entry.key);
  if (api == nullptr) return true;
  const auto first = std::max<Version>(load<big_int16_t>(entry.min), api->served.first);
  const auto last = std::min<Version>(load<big_int16_t>(entry.max), api->served.last);
  if (first > last) return false;
  store(entry.min, big_int16_t(first));
  store(entry.max, big_int16_t(last));
  return true;
}

}  // namespace

Result<ClampedApiVersions> clamp_api_versions(Bytes frame, Version version, std::span<const std::int16_t> hidden) {
  if (frame.size() < sizeof(ResponseHead) + sizeof(std::int16_t)) return Error::truncated;
  auto body = frame.subspan(sizeof(ResponseHead));
  ClampedApiVersions result;
  result.error_code = load<big_int16_t>(body);
  if (result.error_code == error_unsupported_version) version = 0;
  if (!api_versions::response.versions.contain(version)) return Error::unsupported_version;

  Walker walker(api_versions::response, version, body.size());
  Cursor in(body);
  std::vector<Splice> splices;
  Entry entry;
  Bytes count_bytes;
  std::uint32_t count = 0;
  auto begin = sizeof(ResponseHead);  // of the entry being read
  for (;;) {
    const auto step = walker.next(in);
    const auto position = sizeof(ResponseHead) + in.position();
    switch (step.kind) {
      case Walker::Step::Kind::field:
        if (step.role == Role::api_key) entry.key = load<big_int16_t>(step.value);
        if (step.role == Role::min_version) entry.min = step.value;
        if (step.role == Role::max_version) entry.max = step.value;
        break;
      case Walker::Step::Kind::array:
        count_bytes = step.encoded;
        count = step.size;
        begin = position;
        break;
      case Walker::Step::Kind::element_end:
        if (std::ranges::find(hidden, entry.key) != hidden.end() || !clamp(entry))
          splices.push_back({begin, position - begin, {}});
        begin = position;
        break;
      case Walker::Step::Kind::done: {
        if (splices.empty()) return result;
        Writer left(api_versions::response.is_flexible(version));
        left.array(count - splices.size());
        const auto count_at = static_cast<std::size_t>(count_bytes.data() - frame.data());
        splices.insert(splices.begin(), Splice{count_at, count_bytes.size(), std::move(left.data())});
        result.frame = apply_splices(frame, splices);
        return result;
      }
      case Walker::Step::Kind::malformed: return walker.error();
      default: return Error::truncated;
    }
  }
}

std::vector<std::byte> unsupported_api_versions(std::int32_t correlation_id) {
  constexpr auto& api = *find_api(api_versions::response.api_key);
  Writer out(false);
  out.integer(correlation_id).integer(error_unsupported_version).array(1);
  out.integer(api.key).integer(api.served.first).integer(api.served.last);
  return out.frame();
}

}  // namespace codec
