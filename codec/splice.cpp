#include "codec/splice.hpp"

#include <boost/endian/arithmetic.hpp>
#include <cassert>

#include "codec/frame.hpp"

namespace codec {

std::vector<std::byte> apply_splices(std::span<const std::byte> frame, std::span<const Splice> splices) {
  std::ptrdiff_t growth = 0;
  for (const auto& splice : splices) growth += splice.growth();
  std::vector<std::byte> edited;
  edited.reserve(frame.size() + static_cast<std::size_t>(growth));

  std::size_t copied = 0;
  const auto copy_up_to = [&](std::size_t offset) {
    assert(offset >= copied);
    edited.insert(edited.end(), frame.data() + copied, frame.data() + offset);
    copied = offset;
  };
  for (const auto& splice : splices) {
    copy_up_to(splice.offset);
    edited.insert(edited.end(), splice.replacement.begin(), splice.replacement.end());
    copied += splice.size;
  }
  copy_up_to(frame.size());
  store(edited, boost::endian::big_int32_t(static_cast<std::int32_t>(edited.size() - frame_prefix_size)));
  return edited;
}

}  // namespace codec
