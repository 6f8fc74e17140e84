#include "tests/actors/support/liar.hpp"

#include "actors/trust/chain.hpp"
#include "tests/actors/support/rosters.hpp"

#include <caf/meta/annotation.hpp>
#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

namespace shoal::actors::testing {

namespace {

template <class... Ts>
struct type_list {};

using messages_of_rounds =
    type_list<join_request, join_accepted, join_rejected, join_withdrawn, group_begun,
              member_declined, part_chunk, reduced_chunk, chunk_received, part_query, part_claim,
              part_answer, part_wanted, member_ready, member_finished, certificate_wanted,
              certificate_given, part_versions>;

/// Calls what(message) with a copy of the content.
template <class F, class... Ts>
void with_copy(type_list<Ts...>, const caf::message& content, F what) {
  (void)((content.match_elements<Ts>() && (what(Ts{content.get_as<Ts>(0)}), true)) || ...);
}

template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};

/// Visits all fields, and changes the one whose turn it is.
class changer {
public:
  using result_type = void;
  changer(const round_lab* lab, std::size_t which, std::uint8_t how)
      : lab_(lab), which_(which), how_(how % ways_to_change) {}

  std::size_t seen() const noexcept { return at_; }

  template <class... Ts>
  void operator()(Ts&&... fields) {
    (visit(fields), ...);
  }

private:
  bool mine() { return at_++ == which_ && lab_ != nullptr; }

  template <class T>
  void visit(T& x) {
    using type = std::remove_const_t<T>;
    if constexpr (std::is_base_of_v<caf::meta::annotation, type>) {
    } else if constexpr (std::is_integral_v<type>) {
      if (mine()) x = number(x);
    } else if constexpr (std::is_same_v<type, payload>) {
      if (mine()) x = data(x);
    } else if constexpr (std::is_same_v<type, caf::actor>) {
      if (mine()) x = address();
    } else if constexpr (is_vector<type>::value) {
      if (mine()) resize(x);
      for (auto& each : x) visit(each);
    } else {
      inspect(*this, x);
    }
  }

  template <class T>
  T number(T x) const {
    const auto n = static_cast<std::uint64_t>(x);
    switch (how_) {
    case 0:
      return static_cast<T>(n + 1);
    case 1:
      return static_cast<T>(n - 1);
    case 2:
      return 0;
    case 3:
      return std::numeric_limits<T>::max();
    case 4:
      return std::numeric_limits<T>::min();
    case 5:
      return static_cast<T>(n ^ 1);
    case 6:
      return static_cast<T>(n ^ std::uint64_t{1} << (8 * sizeof(T) - 2));
    case 7:
      return static_cast<T>(1'000'000);
    case 8:
      return static_cast<T>(n * 2);
    case 9:
      return static_cast<T>(n + 8);
    case 10:
      return static_cast<T>(101); // the id of a member
    default:
      return static_cast<T>(4'000'000'000U);
    }
  }
  payload data(const payload& x) const {
    const auto filled = [&](std::size_t bytes, float with) {
      return payload{std::vector<float>(bytes / 4, with)};
    };
    switch (how_) {
    case 0:
      return filled(x.size(), 1e6F);
    case 1:
      return filled(x.size(), -1e38F);
    case 2:
      return filled(x.size(), std::numeric_limits<float>::quiet_NaN());
    case 3:
      return filled(x.size(), std::numeric_limits<float>::infinity());
    case 4:
      return {};
    case 5:
      return payload::size_only(x.size());
    case 6:
      return filled(4, 1);
    case 7:
      return filled(400, 1);
    case 8:
      return filled(x.size(), 0);
    case 9:
      return payload{std::vector<std::byte>(3)};
    case 10:
      return payload{std::vector<std::byte>(x.size() + 1, std::byte{0xff})};
    default:
      return payload{std::vector<std::byte>(x.size(), std::byte{0x7f})};
    }
  }
  caf::actor address() const {
    if (how_ == 0) return {};
    if (how_ == 1) return lab_->stranger();
    return lab_->address(how_ % lab_->size());
  }
  template <class T>
  void resize(std::vector<T>& x) const {
    if (how_ % 4 == 0) {
      x.clear();
    } else if (how_ % 4 == 1 && !x.empty()) {
      x.pop_back();
    } else if (how_ % 4 == 2 && !x.empty()) {
      x.push_back(x.front());
    } else if (how_ == 3 && x.size() > 1) {
      std::swap(x.front(), x.back());
    } else {
      x.resize(how_ == 11 ? 200 : x.size() + 1);
    }
  }

  const round_lab* lab_;
  std::size_t at_ = 0, which_;
  std::uint8_t how_;
};

} // namespace

std::size_t field_count(const caf::message& content) {
  std::size_t out = 0;
  with_copy(messages_of_rounds{}, content, [&](auto copy) {
    changer all(nullptr, 0, 0);
    inspect(all, copy);
    out = all.seen();
  });
  return out;
}

caf::message with_changed_field(const round_lab& lab, const caf::message& content,
                                std::size_t field, std::uint8_t how) {
  caf::message out;
  with_copy(messages_of_rounds{}, content, [&](auto copy) {
    changer one(&lab, field, how);
    inspect(one, copy);
    out = caf::make_message(std::move(copy));
  });
  return out;
}

caf::message signed_again(const round_lab& lab, std::uint32_t self, const caf::message& content) {
  const auto& host = lab.host(self);
  caf::message out = content;
  with_copy(messages_of_rounds{}, content, [&](auto copy) {
    using type = decltype(copy);
    if constexpr (std::is_same_v<type, member_ready>) {
      copy.by = host.sign(vote_statement(copy.group, copy.version));
    } else if constexpr (std::is_same_v<type, member_declined>) {
      copy.by = host.sign(decline_statement(copy.group));
    } else if constexpr (std::is_same_v<type, join_request>) {
      group_begun of;
      of.epoch = copy.epoch;
      of.state = copy.state;
      of.value_count = copy.value_count;
      of.codec = copy.codec;
      copy.member.by = host.sign(member_statement(of, copy.member));
    } else if constexpr (std::is_same_v<type, group_begun>) {
      for (auto& who : copy.members)
        if (who.key == host.key()) who.by = host.sign(member_statement(copy, who));
      close_roster(copy, host);
    } else {
      return;
    }
    out = caf::make_message(std::move(copy));
  });
  return out;
}

std::vector<std::string> harm_done(const round_lab& lab, std::uint32_t hostile) {
  std::vector<std::string> out;
  std::map<group_id, const round_result*> first;
  std::map<state_id, id128> versions;
  for (std::uint32_t m = 0; m < lab.size(); ++m) {
    if (m == hostile || !lab.alive(m)) continue;
    const auto wrong = [&](std::string_view what) {
      out.push_back(fmt::format("member {}: {}", m, what));
    };
    if (!lab.ended(m)) {
      wrong("never ends");
      continue;
    }
    const auto& result = lab.result(m);
    if (!result.succeeded()) {
      if (result.reason == reason::none) wrong("no reason");
      continue;
    }
    if (!result.certificate) {
      wrong("no certificate");
      continue;
    }
    const auto& certificate = *result.certificate;
    const auto& by = lab.host(m);
    if (!check(certificate, [&](const key256& key, const digest& of, const signature& with) {
          return by.is_signed_by(key, of, with);
        }))
      wrong("a certificate that proves nothing");
    const auto& group = lab.group_of(m);
    if (version_of(group.boundaries, group.chunk_bytes, result.parts, result.values) !=
        certificate.version)
      wrong("a certificate for another result");
    const auto& same = *first.try_emplace(certificate.round(), &result).first->second;
    const auto mine = result.values.bytes(), theirs = same.values.bytes();
    if (certificate.version != same.certificate->version || mine.size() != theirs.size() ||
        std::memcmp(mine.data(), theirs.data(), theirs.size()) != 0)
      wrong(fmt::format("another result than others of its round ({})", lab.outcomes()));
    const auto state =
        state_after(certificate.roster.state, certificate.round(), certificate.version);
    const auto content = hash_of(mine);
    if (versions.try_emplace(state, id128::from(content)).first->second != id128::from(content))
      wrong("two states have one id");
  }
  for (const auto& text : lab.suspicions) {
    const auto says = text.find(" says of peer ");
    if (says == std::string::npos) {
      out.push_back(text);
      continue;
    }
    const auto by = std::stoul(text), culprit = std::stoul(text.substr(says + 14));
    if (by != hostile && culprit != 0 && culprit != 100 + hostile) out.push_back(text);
  }
  return out;
}

} // namespace shoal::actors::testing
