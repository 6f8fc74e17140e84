#include "actors/conduct/attacks_on_data.hpp"

#include "actors/data/messages.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace shoal::actors {

namespace {

/// The bytes of `count` samples, each of them backwards.
payload backwards(const payload& samples, std::uint32_t count) {
  std::vector<std::byte> out(samples.bytes().begin(), samples.bytes().end());
  const auto size = static_cast<std::ptrdiff_t>(out.size() / count);
  for (auto at = out.begin(); at != out.end(); at += size) std::reverse(at, at + size);
  return payload{std::move(out)};
}

/// Changes the message if it is one of this type.
template <class Message>
bool poison(caf::message& content) {
  if (!content.match_elements<Message>()) return false;
  auto copy = content.get_as<Message>(0);
  if (!copy.data.is_size_only()) copy.data = backwards(copy.data, copy.range.count);
  content = caf::make_message(std::move(copy));
  return true;
}

} // namespace

poisoned_samples::poisoned_samples(host& on, conduct_options how)
    : message_attack(
          on, about(std::move(how), {samples::message_name, proven_samples::message_name,
                                     sample_copies::message_name, proven_copies::message_name})) {}

void poisoned_samples::strike(outgoing_message message, std::vector<outgoing_message>& out) {
  poison<samples>(message.content) || poison<proven_samples>(message.content) ||
      poison<sample_copies>(message.content) || poison<proven_copies>(message.content);
  out.push_back(std::move(message));
}

} // namespace shoal::actors
