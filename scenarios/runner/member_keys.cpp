#include "scenarios/runner/member_keys.hpp"

#include "actors/trust/identity.hpp"

#include <cstring>
#include <span>
#include <utility>

namespace shoal::scenarios {

member_keys member_keys_of(std::string name, std::shared_ptr<const netem::wire::signing_key> key,
                           std::string certificate) {
  const auto& whole = key->public_key();
  return {std::move(name),
          actors::key_from({reinterpret_cast<const char*>(whole.data()), whole.size()}),
          [key = std::move(key)](const digest& statement) {
            const auto made = key->sign(std::as_bytes(std::span(statement.bytes)));
            actors::signature out;
            static_assert(sizeof out == sizeof made);
            std::memcpy(&out, made.data(), sizeof out);
            return out;
          },
          std::move(certificate)};
}

} // namespace shoal::scenarios
