#include "actors/conduct/attacks.hpp"

#include "actors/averaging/certificate.hpp"
#include "actors/averaging/messages.hpp"
#include "actors/averaging/round.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

namespace shoal::actors {

namespace {

/// Sees fields and changes nothing, unless a derived class does.
struct onlooker : field_visitor {
  void number(std::uint64_t&, unsigned) override {}
  void text(std::string&) override {}
  void bytes(payload&) override {}
  void address(caf::actor&) override {}
};

struct field_counter final : field_visitor {
  std::size_t fields = 0;
  void number(std::uint64_t&, unsigned) override { ++fields; }
  void text(std::string&) override { ++fields; }
  void bytes(payload&) override { ++fields; }
  void address(caf::actor&) override { ++fields; }
};

payload with_bytes(const payload& from,
                   const std::function<void(std::vector<std::byte>&)>& change) {
  if (from.is_size_only()) return payload::size_only(from.size() + 4);
  std::vector<std::byte> copy(from.bytes().begin(), from.bytes().end());
  change(copy);
  return payload{std::move(copy)};
}

struct field_changer final : field_visitor {
  std::size_t left;
  std::uint64_t how;
  const std::vector<caf::actor>& others;
  bool changed = false;

  field_changer(std::size_t field, std::uint64_t choice, const std::vector<caf::actor>& actors)
      : left(field), how(choice), others(actors) {}

  bool here() { return left-- == 0 && (changed = true); }
  void number(std::uint64_t& value, unsigned bits) override {
    if (!here()) return;
    const auto most = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    const std::uint64_t choices[] = {value + 1,
                                     value - 1,
                                     0,
                                     1,
                                     most,
                                     most / 2,
                                     most / 2 + 1,
                                     value ^ (std::uint64_t{1} << ((how / 16) % bits))};
    const auto old = value;
    value = choices[how % 8] & most;
    if (value == old) value = (old + 1) & most;
  }
  void text(std::string& value) override {
    if (!here()) return;
    if (how % 3 == 0)
      value.clear();
    else if (how % 3 == 1)
      value += "\x1b[31m\xff";
    else
      value.assign(300, 'x');
  }
  void bytes(payload& value) override {
    if (!here()) return;
    value = with_bytes(value, [&](std::vector<std::byte>& all) {
      if (all.empty() || how % 3 == 0)
        all.push_back(std::byte{1});
      else if (how % 3 == 1)
        all[(how / 3) % all.size()] ^= std::byte{0x41};
      else
        all.resize(all.size() / 2);
    });
  }
  void address(caf::actor& value) override {
    if (!here()) return;
    value = others.empty() || how % 4 == 0 ? caf::actor{} : others[(how / 4) % others.size()];
  }
};

/// The addresses in messages, as far as an attacker remembers them.
struct address_collector final : onlooker {
  std::deque<caf::actor>& into;
  explicit address_collector(std::deque<caf::actor>& to) : into(to) {}
  void address(caf::actor& value) override {
    if (!value || std::find(into.begin(), into.end(), value) != into.end()) return;
    into.push_back(value);
    if (into.size() > 64) into.pop_front();
  }
};

} // namespace

std::size_t count_fields(const caf::message& content) {
  field_counter count;
  return with_fields(content, count) ? count.fields : 0;
}

std::optional<caf::message> change_field(const caf::message& content, std::size_t field,
                                         std::uint64_t how, const std::vector<caf::actor>& others) {
  field_changer change(field, how, others);
  auto out = with_fields(content, change);
  return change.changed ? out : std::nullopt;
}

attack::attack(host& on, const conduct_options& how)
    : on_(on), how_(how), draws_(on.random_stream("conduct." + how.kind)), started_(on.utc_ns()) {}

bool attack::strikes() {
  const auto now = on_.utc_ns();
  if (now - started_ < how_.from.count()) return false;
  if (last_ != 0 && now - last_ < how_.every.count()) return false;
  last_ = now;
  return true;
}

bool attack::strikes_in(std::uint64_t epoch) {
  return epoch >= how_.from_epoch && (epoch - how_.from_epoch) % how_.every_epochs == 0 &&
         strikes();
}

bool attack::concerns(const caf::message& content) const {
  const auto name = name_of(content);
  if (name.empty()) return false;
  return how_.messages.empty() ||
         std::find(how_.messages.begin(), how_.messages.end(), name) != how_.messages.end();
}

void message_attack::alter(outgoing_message message, std::vector<outgoing_message>& out) {
  std::lock_guard guard(mutex_);
  if (concerns(message.content) && strikes())
    strike(std::move(message), out);
  else
    out.push_back(std::move(message));
}

void mutated_messages::strike(outgoing_message message, std::vector<outgoing_message>& out) {
  const auto times = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(how_.strength));
  for (std::uint64_t i = 0; i < times; ++i) {
    const auto fields = count_fields(message.content);
    if (fields == 0) break;
    if (auto changed =
            change_field(message.content, draws_.below(fields), draws_.next(), {message.to}))
      message.content = std::move(*changed);
  }
  out.push_back(std::move(message));
}

void repeated_messages::strike(outgoing_message message, std::vector<outgoing_message>& out) {
  const auto more = static_cast<std::size_t>(std::clamp(how_.strength, 0.0, 1e4));
  for (std::size_t i = 0; i < more; ++i) out.push_back(message);
  out.push_back(std::move(message));
}

void replayed_messages::strike(outgoing_message message, std::vector<outgoing_message>& out) {
  earlier_.push_back(message.content);
  if (earlier_.size() > 256) earlier_.pop_front();
  message.content = earlier_[draws_.below(earlier_.size())];
  out.push_back(std::move(message));
}

void borrowed_identity::strike(outgoing_message message, std::vector<outgoing_message>& out) {
  // The receiver is the victim: a peer that believes ids would take its own word for it.
  struct borrower final : onlooker {
    peer_id own = 0, victim = 0;
    void number(std::uint64_t& value, unsigned bits) override {
      if (bits == 64 && value == own) value = victim;
    }
  } borrow;
  borrow.own = on_.id();
  borrow.victim = on_.peer_of(caf::actor_cast<caf::strong_actor_ptr>(message.to));
  if (auto changed = with_fields(message.content, borrow)) message.content = std::move(*changed);
  out.push_back(std::move(message));
}

void redirected_replies::strike(outgoing_message message, std::vector<outgoing_message>& out) {
  struct redirector final : onlooker {
    peer_id own = 0;
    host* on = nullptr;
    caf::actor victim;
    void address(caf::actor& value) override {
      if (value && on->peer_of(caf::actor_cast<caf::strong_actor_ptr>(value)) == own)
        value = victim;
    }
  } redirect;
  address_collector collect(seen_);
  with_fields(message.content, collect);
  if (!seen_.empty()) {
    redirect.own = on_.id();
    redirect.on = &on_;
    redirect.victim = seen_[draws_.below(seen_.size())];
    if (auto changed = with_fields(message.content, redirect))
      message.content = std::move(*changed);
  }
  out.push_back(std::move(message));
}

void equivocation::strike(outgoing_message message, std::vector<outgoing_message>& out) {
  struct shifter final : onlooker {
    float by = 0;
    void bytes(payload& value) override {
      if (value.is_size_only() || value.size() % 4 != 0 || value.empty()) return;
      value = with_bytes(value, [&](std::vector<std::byte>& all) {
        for (std::size_t at = 0; at < all.size(); at += 4) {
          float x;
          std::memcpy(&x, all.data() + at, 4);
          x += by;
          std::memcpy(all.data() + at, &x, 4);
        }
      });
    }
  } shift;
  shift.by = static_cast<float>(
      how_.strength *
      static_cast<double>(on_.peer_of(caf::actor_cast<caf::strong_actor_ptr>(message.to)) % 3));
  if (auto changed = with_fields(message.content, shift)) message.content = std::move(*changed);
  out.push_back(std::move(message));
}

conduct_options about(conduct_options how, std::vector<std::string> messages) {
  how.messages = std::move(messages);
  return how;
}

stalling_leader::stalling_leader(host& on, conduct_options how)
    : message_attack(on, about(std::move(how), {group_begun::message_name})) {}

void stalling_leader::ask_for_round(round_request& request) {
  std::lock_guard guard(mutex_);
  if (!strikes_in(request.epoch)) return;
  request.max_wait = duration{1}; // the deadline is now
  request.awaited = std::chrono::hours(1);
}

two_votes::two_votes(host& on, conduct_options how)
    : message_attack(on, about(std::move(how), {member_ready::message_name})) {}

void two_votes::strike(outgoing_message message, std::vector<outgoing_message>& out) {
  out.push_back(message);
  auto vote = message.content.get_as<member_ready>(0);
  ++vote.version.low;
  vote.by = on_.sign(vote_statement(vote.group, vote.version));
  message.content = caf::make_message(vote);
  out.push_back(std::move(message));
}

void value_attack::contribute(payload& values, const round_request& request) {
  std::lock_guard guard(mutex_);
  const bool now = request.weight > 0 && strikes_in(request.epoch);
  // Without bits there is nothing to change. The member's hashes then say that it would have.
  falsifies_ = now && values.is_size_only();
  if (!now || values.is_size_only()) return;
  const auto floats = values.floats();
  std::vector<float> changed(floats.begin(), floats.end());
  change(changed);
  values = payload{std::move(changed)};
}

bool value_attack::falsifies_sizes() {
  std::lock_guard guard(mutex_);
  return falsifies_;
}

void huge_values::change(std::span<float> values) {
  for (auto& x : values) {
    x *= static_cast<float>(1e30 * how_.strength);
    if (!std::isfinite(x)) x = x > 0 ? 3e38F : -3e38F;
  }
}

void flipped_signs::change(std::span<float> values) {
  for (auto& x : values) x *= static_cast<float>(-how_.strength);
}

void random_direction::change(std::span<float> values) {
  double length = 0;
  for (const auto x : values) length += double{x} * x;
  // All attackers of the swarm take the same direction.
  auto common = stream(0, "conduct.random_direction");
  std::vector<double> direction(values.size());
  common.normals(direction);
  double own = 0;
  for (const auto x : direction) own += x * x;
  const auto scale = own > 0 ? how_.strength * std::sqrt(length / own) : 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(direction[i] * scale);
}

void false_means::reduced(const reduced_unit& what) {
  std::lock_guard guard(mutex_);
  if (!strikes()) return;
  for (auto& x : what.values) x += static_cast<float>(how_.strength);
}

void wrong_layers::computed_layers(std::span<float> outputs) {
  std::lock_guard guard(mutex_);
  if (!strikes()) return;
  for (auto& x : outputs) x *= static_cast<float>(1 + how_.strength * draws_.normal());
}

} // namespace shoal::actors
