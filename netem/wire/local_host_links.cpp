#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "netem/wire/clean_text.hpp"
#include "netem/wire/end_reasons.hpp"
#include "netem/wire/local_host.hpp"
#include "netem/wire/plain_words.hpp"
#include "netem/wire/send_control_request.hpp"

namespace shoal::netem::wire {

namespace {

/// The pipes of one member that wait for a hello. Each attempt to connect needs two.
constexpr std::size_t most_waiting_of_one = 16;

} // namespace

void local_host::start(const link_ptr& of, int which) {
  const auto through = of->pipes[which].through;
  through->start(
      [weak = weak_from_this(), of, which](payload bytes) {
        if (auto self = weak.lock()) self->safely(of, [&] { self->frame_came(of, which, bytes); });
      },
      [weak = weak_from_this(), of, which, through = through.get()](const std::string& why) {
        auto self = weak.lock();
        if (!self) return;
        self->safely(of, [&] {
          if (through->malformed()) self->malformed(of);
          self->pipe_closed(of, which, why);
        });
      });
}

template <class Work>
void local_host::safely(const link_ptr& of, Work work) {
  try {
    try {
      work();
    } catch (const std::exception&) {
      all_->count("failed_callback");
      end(of, "this host could not handle what it sent");
    }
  } catch (const std::exception&) {
    // The report of the end failed as well; it is counted already.
  }
}

void local_host::incoming(std::shared_ptr<pipe> made) {
  if (made->kind() == control_request_kind) return requests_->incoming(std::move(made), now());
  if (made->kind() == stripe_kind) return stripes_->incoming(std::move(made), now());
  pipe_came(std::move(made));
}

void local_host::pipe_came(std::shared_ptr<pipe> made) {
  const int which = made->kind() == pipe_kinds[0] ? 0 : made->kind() == pipe_kinds[1] ? 1 : -1;
  auto refused = which < 0 ? refusal::not_ours : refusal::none;
  std::string detail;
  certified_member who;
  if (which >= 0 && all_->options.admits)
    refused = all_->options.admits->check(made->certificate(), utc(), who, detail);
  auto fresh = std::make_shared<host_link>();
  fresh->certified = std::move(who);
  fresh->since = now();
  fresh->pipes[std::max(which, 0)].through = made;
  bool open = false;
  {
    const auto state = state_.lock();
    open = state->is_open() && state->links.waiting_of(fresh->certified) < most_waiting_of_one;
    if (open) state->links.add(fresh);
  }
  start(fresh, std::max(which, 0));
  if (!open) return made->close();
  if (refused != refusal::none) refuse(fresh, refused, detail);
}

// -- hellos ----

void local_host::hello_came(const link_ptr& of, int which, const payload& bytes) {
  bool other_version = false;
  auto theirs = read_hello(bytes.bytes(), other_version);
  if (!theirs)
    return refuse(of, other_version ? refusal::other_version : refusal::not_ours,
                  other_version ? "it speaks another version" : "");
  if (of->dialled) return greeted(of, which, std::move(*theirs));
  if (const auto whole = state_.lock()->links.hello_came(of, which, *theirs)) decide(whole);
}

verdict local_host::certify(host_link& of, const pipe& through) const {
  verdict out;
  out.why = all_->options.admits->check(through.certificate(), utc(), of.certified, out.text);
  return out;
}

void local_host::greeted(const link_ptr& of, int which, hello theirs) {
  std::lock_guard one_at_a_time(of->greeting);
  if (!state_.lock()->take_hello(*of, std::move(theirs))) return;
  if (rules_.keys)
    for (int i = 0; i < 2; ++i) {
      // A relayed pipe shows its certificate with its first frame. Each of the two proves that the
      // owner of the same node id is behind it.
      if (of->relayed && i != which) continue;
      if (const auto said = certify(*of, *of->pipes[i].through); said.why != refusal::none)
        return refuse(of, said.why, said.text);
      if (of->certified.name != of->theirs.name) break; // decide() refuses it
    }
  decide(of);
}

void local_host::decide(const link_ptr& of) {
  if (of->relayed && !of->dialled && rules_.keys)
    if (const auto said = certify(*of, *of->pipes[0].through); said.why != refusal::none)
      return refuse(of, said.why, said.text);
  if (const auto said = check(*of); said.why != refusal::none)
    return refuse(of, said.why, said.text);
  connect(of);
}

/// The node id that the other side may use: that of the key in its certificate, so that an address
/// proves who is behind it.
caf::node_id local_host::node_of(const host_link& of) const {
  const auto& theirs = of.theirs;
  return fabric::node_of(of.certified.identity.empty() ? all_->net->identity_of(theirs.name)
                                                       : of.certified.identity,
                         theirs.incarnation);
}

verdict local_host::check(const host_link& of) {
  const auto& theirs = of.theirs;
  attested_name attested{of.certified.name, of.relayed.has_value(), false};
  attested.relay_agrees = of.relayed && key_of(node_of(of)) == *of.relayed;
  if (auto said = check_hello(rules_, theirs, attested, utc()); said.why != refusal::none)
    return said;
  const auto& identity = of.certified.identity;
  if (all_->options.banned && !identity.empty() && all_->options.banned(identity))
    return {refusal::banned, "the swarm has banned its key"};
  return state_.lock()->check_name(theirs, identity, now());
}

void local_host::connect(const link_ptr& of) {
  const auto& theirs = of->theirs;
  const auto id = node_of(*of);
  const auto host = all_->net->host_at(id);
  all_->net->set_name(host, theirs.name);
  auto service = caf::actor_cast<caf::actor>(all_->net->address_at(id, theirs.service));
  const auto number = revoked_.enabled() ? std::optional(revoked_.number()) : std::nullopt;
  const auto now_up = state_.lock()->connect(of, host, id, std::move(service), number, now());
  if (!now_up.done) return;
  for (const auto other : now_up.dead) remove_host(other);
  for (const auto& each : now_up.replaced) end(each, "another link took its place");
  apply([&](host_state& state, deferred& later) { state.pump(now(), later); });
  if (now_up.first && all_->options.on_up) all_->options.on_up(host_, *now_up.first);
  // A new list may have come after the certificate was checked.
  end_if_revoked(of);
}

void local_host::refuse(const link_ptr& of, refusal why, const std::string& text) {
  auto refused = state_.lock()->refuse(*of, now());
  if (!refused) return;
  all_->count(name_of(why));
  auto& [pipes, who] = *refused;
  if (who.empty() && !pipes.empty()) who = pipes[0]->peer();
  tell_refused(who, why, why == refusal::other_scenario ? std::string{} : text, false);
  // The list proves to the other side that it is revoked.
  if (why == refusal::revoked && !pipes.empty())
    if (auto list = revoked_.newest_list_frame()) pipes[0]->send(std::move(*list));
  for (const auto& each : pipes) {
    each->send(frame_writer(frame_kind::refused)
                   .put(static_cast<std::uint8_t>(why))
                   .put(std::string_view(text))
                   .done());
    each->finish();
  }
}

// -- ends ----

void local_host::pipe_closed(const link_ptr& given, int which, const std::string& why) {
  const auto [of, result] = state_.lock()->pipe_closed(given, which);
  if (result == host_state::pipe_end::left) return left(of);
  if (result == host_state::pipe_end::lost) end(of, why);
}

void local_host::left(const link_ptr& of) {
  remove_host(of->host);
  if (all_->options.on_left) all_->options.on_left(host_, of->theirs.name);
}

void local_host::end(const link_ptr& given, const std::string& why) {
  const auto gone = state_.lock()->remove(given, now(), why == nothing_listens);
  if (!gone.link) return;
  if (gone.tick_at) tick_at(*gone.tick_at);
  for (const auto& each : gone.orphans) end(each, "the relay is gone");
  for (const auto& each : gone.pipes) each->close();
  if (gone.lost) all_->net->gone(host_, gone.lost->host, {}, false);
  if (gone.lost && all_->options.on_down) all_->options.on_down(host_, *gone.lost, clean_text(why));
  tell_failed(*gone.link, why, gone.cannot_join);
}

void local_host::tell_failed(const host_link& of, const std::string& why, bool cannot_join) {
  if (!of.dialled || of.up) return;
  tell_refused(of.target, of.refused, of.refused == refusal::none ? why : of.refused_text,
               cannot_join);
}

void local_host::tell_refused(const std::string& where, refusal why, const std::string& text,
                              bool fatal) {
  if (!all_->options.on_refused || (!told_.lock()->take(1, now()) && !fatal)) return;
  all_->options.on_refused(host_, clean_text(where), why, clean_text(text), fatal);
}

void local_host::end_banned() {
  if (!all_->options.banned || now() - bans_checked_.load() < std::chrono::seconds(1)) return;
  bans_checked_ = now();
  const auto links = state_.lock()->links.up();
  for (const auto& each : links)
    if (!each->certified.identity.empty() && all_->options.banned(each->certified.identity)) {
      all_->count(name_of(refusal::banned));
      end(each, "the swarm has banned its key");
    }
}

void local_host::remove_host(host_index host) {
  const auto links = state_.lock()->links.with(host);
  for (const auto& each : links) end(each, std::string(has_ended));
  state_.lock()->forget(host);
  all_->net->gone(host_, host, {}, true);
  all_->net->remote_died(host);
}

void local_host::misbehaved(const link_ptr& of, const char* why) {
  if (of->misbehaved.exchange(true)) return; // the other pipe reports the same fault
  all_->count(why);
  state_.lock()->faults.ban(of->who(), now(), all_->options.ban_time);
  end(of, "it broke the protocol");
}

void local_host::malformed(const link_ptr& given) {
  link_ptr of;
  {
    const auto state = state_.lock();
    of = state->links.whole(given);
    // The sender has not proved its name before the link is up, so that name is not banned.
    if (!of->up && (of->closed || std::exchange(of->refused_by_us, true))) return;
  }
  if (of->up) return misbehaved(of, "bad_frame");
  all_->count(name_of(refusal::not_ours));
}

} // namespace shoal::netem::wire
