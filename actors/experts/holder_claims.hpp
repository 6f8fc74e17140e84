// Whether hosts hold the experts that their records claim. A record alone proves nothing, so a
// server sends the host one row through the expert. An answer lasts for a while.
//   unknown -> asked -> held or refuted -> unknown
// No actor and no clock.
#pragma once

#include "actors/experts/expert_record.hpp"
#include "actors/ids.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace shoal::actors {

class holder_claims {
public:
  enum class state : std::uint8_t { unknown, asked, held, refuted };

  /// `lasts`: how long an answer counts.
  explicit holder_claims(duration lasts) : lasts_(lasts) {}

  state of(const expert_id& which, peer_id whose, duration now) const {
    const auto found = claims_.find({which, whose});
    const bool is_old =
        found == claims_.end() || (found->second.is != state::asked && now >= found->second.until);
    return is_old ? state::unknown : found->second.is;
  }
  /// The host is asked with this request.
  void ask(const expert_id& which, peer_id whose, std::uint64_t request, duration now) {
    std::erase_if(claims_, [&](const auto& each) {
      return each.second.is != state::asked && now >= each.second.until;
    });
    claims_[{which, whose}] = {state::asked, request, {}};
  }
  /// An answer of the host, or of nobody in time. The expert of the claim; none if that host was
  /// not asked so.
  std::optional<expert_id> answered(peer_id whose, std::uint64_t request, bool holds,
                                    duration now) {
    return end(request, holds, now, whose);
  }
  std::optional<expert_id> late(std::uint64_t request, duration now) {
    return end(request, false, now, 0);
  }

private:
  struct claim {
    state is = state::unknown;
    std::uint64_t request = 0;
    duration until{};
  };
  std::optional<expert_id> end(std::uint64_t request, bool holds, duration now, peer_id whose) {
    for (auto& [key, each] : claims_) {
      if (each.is != state::asked || each.request != request || (whose != 0 && key.second != whose))
        continue;
      each = {holds ? state::held : state::refuted, request, now + lasts_};
      return key.first;
    }
    return std::nullopt;
  }

  duration lasts_;
  std::map<std::pair<expert_id, peer_id>, claim> claims_;
};

} // namespace shoal::actors
