#include "actors/conduct/attacks_on_experts.hpp"

#include "actors/experts/messages.hpp"

#include <cstddef>
#include <cstring>
#include <utility>

namespace shoal::actors {

false_copies::false_copies(host& on, conduct_options how)
    : message_attack(on, about(std::move(how), {expert_copy::message_name})) {}

void false_copies::strike(outgoing_message message, std::vector<outgoing_message>& out) {
  auto copy = message.content.get_as<expert_copy>(0);
  if (!copy.values.is_size_only()) {
    std::vector<float> values(copy.values.size() / sizeof(float));
    std::memcpy(values.data(), copy.values.bytes().data(), values.size() * sizeof(float));
    // Parameters are the first third for AdamW. The state of an optimizer has no negative values in
    // its second half, and a copy with a wrong sign there would not be kept.
    for (std::size_t i = 0; i < values.size() / 3; ++i)
      values[i] *= -static_cast<float>(how_.strength);
    copy.values = payload{std::move(values)};
  }
  message.content = caf::make_message(std::move(copy));
  out.push_back(std::move(message));
}

} // namespace shoal::actors
