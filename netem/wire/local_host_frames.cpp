#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "netem/wire/arrived_message.hpp"
#include "netem/wire/clean_text.hpp"
#include "netem/wire/local_host.hpp"
#include "netem/wire/message_codec.hpp"
#include "netem/wire/message_frames.hpp"
#include "netem/wire/relayed_pipe.hpp"

#include <variant>

namespace shoal::netem::wire {

namespace {

constexpr std::size_t most_watched = std::size_t{1} << 16; // actors that one host may watch
/// The most bytes of ping answers that may wait.
constexpr std::size_t most_answers = std::size_t{64} << 10;

} // namespace

void local_host::frame_came(const link_ptr& given, int which, const payload& bytes) {
  if (silent_ || bytes.empty()) return;
  const auto kind = static_cast<frame_kind>(std::to_integer<std::uint8_t>(bytes.bytes()[0]));
  const auto [of, step] = state_.lock()->frame_came(given, which, kind, bytes.size(), now());
  if (step == frame_step::drop) return;
  ++all_->frames_in;
  all_->bytes_in += bytes.size();
  of->received += bytes.size();
  switch (step) {
  case frame_step::drop:
    return;
  case frame_step::refused:
    return refused_came(of, which, bytes);
  case frame_step::list: {
    const auto list = read_link_frame(kind, bytes.bytes());
    if (!list || !revoked_.enabled()) return refuse(of, refusal::not_ours, "");
    return revocation_list_came(of, std::get<revocation_list_frame>(*list).pem);
  }
  case frame_step::hello:
    return hello_came(of, which, bytes);
  case frame_step::wrong:
    return refuse(of, refusal::not_ours, "");
  case frame_step::handle:
    break;
  }
  if (!handle(of, which, kind, bytes)) misbehaved(of, "bad_frame");
  bound_rate(*of, which);
}

void local_host::refused_came(const link_ptr& of, int which, const payload& bytes) {
  {
    const auto state = state_.lock();
    if (of->refused != refusal::none) return;
  }
  if (rules_.keys) {
    // Only a member of the swarm may turn this host away.
    certified_member who;
    std::string detail;
    const auto why =
        all_->options.admits->check(of->pipes[which].through->certificate(), utc(), who, detail);
    if (why != refusal::none) return refuse(of, why, detail);
  }
  frame_reader in(bytes.bytes());
  in.get<std::uint8_t>();
  const auto why = in.get<std::uint8_t>();
  auto text = in.text(longest_revocation_list);
  if (!in.finished() || why == 0 || why >= refusal_names.size()) return end(of, "it refused us");
  const auto refused = static_cast<refusal>(why);
  if (refused == refusal::other_scenario && all_->options.difference)
    text = all_->options.difference(all_->options.scenario, text);
  const auto state = state_.lock();
  if (of->refused != refusal::none) return;
  of->refused = refused;
  of->refused_text = clean_text(text);
}

/// After too many frames in a second, stops reading until the second ends, as if the window were
/// full. For a relayed link, the pipe of the relay counts the frames.
void local_host::bound_rate(host_link& of, int which) {
  if (of.relayed) return;
  auto& direction = of.pipes[which];
  const auto goes_on = direction.rate.count(now(), all_->options.most_frames);
  if (!goes_on) return;
  // A listener has one window size for both pipes.
  const auto full =
      std::max(all_->options.control.window_bytes, all_->options.bulk.window_bytes) + 1;
  direction.through->window().add(full);
  ++all_->held_back;
  all_->clock->at(*goes_on,
                  [through = direction.through, full] { through->window().remove(full); });
}

bool local_host::handle(const link_ptr& of, int which, frame_kind kind, const payload& bytes) {
  if (kind == frame_kind::message || kind == frame_kind::piece)
    return message_part_came(of, which, kind, bytes);
  if (kind == frame_kind::relayed) return relayed_came(of, which, bytes);
  const auto what = read_link_frame(kind, bytes.bytes());
  return what && std::visit([&](const auto& each) { return on(of, which, each); }, *what);
}

// -- messages ----

bool local_host::message_part_came(const link_ptr& of, int which, frame_kind kind,
                                   const payload& bytes) {
  auto& direction = of->pipes[which];
  std::optional<message_assembly::whole> whole;
  const auto before = direction.messages.waiting();
  const bool good = kind == frame_kind::message ? direction.messages.begin(bytes, whole)
                                                : direction.messages.piece(bytes, whole);
  if (!good) return false;
  if (!of->incomplete.changed(before, direction.messages.waiting(),
                              all_->options.most_incomplete)) {
    all_->count("incomplete_full");
    end(of, "too many bytes of incomplete messages wait");
    return true;
  }
  if (!whole) return true;
  direction.through->window().add(whole->bytes);
  message_came(of, which, whole->head, whole->body, whole->bytes);
  return true;
}

void local_host::message_came(const link_ptr& of, int which, const message_head& head,
                              const payload& body, std::size_t charged) {
  const auto& through = of->pipes[which].through;
  const auto aligned = (std::size_t{head.binary} + 7) / 8 * 8;
  std::size_t unheard = 0;
  auto content =
      decode(*all_->system, *all_->net, body.bytes().first(head.binary),
             body.slice(aligned, body.size() - aligned), all_->options.acceptable, &unheard);
  const bool too_many = unheard > 0 && state_.lock()->faults.names_too_many(
                                           of->who(), unheard, all_->options.most_named, now());
  if (!content || too_many) {
    through->window().remove(charged);
    return misbehaved(of, content ? "too_many_hosts" : "bad_message");
  }
  caf::strong_actor_ptr sender;
  if (head.from != no_sender)
    sender = all_->net->address_at(of->node, caf::actor_id{head.from} + 1);
  caf::mailbox_element_ptr element{new arrived_message(std::move(sender), std::move(*content),
                                                       through, charged, {all_, &all_->unhandled})};
  all_->net->deliver({of->host, head.from == no_sender ? 0 : head.from}, {host_, head.to},
                     std::move(element), head.wire_bytes);
}

bool local_host::relayed_came(const link_ptr& of, int which, const payload& bytes) {
  const auto head = read_relayed_head(bytes.bytes());
  if (!head || head->which != which || of->relayed) return false;
  const auto inner = bytes.slice(relayed_head::bytes, bytes.size() - relayed_head::bytes);
  if (inner.empty()) return false;
  host_state::relayed_target to;
  apply([&](host_state& state, deferred& later) {
    to = state.relayed_came(of, *head, inner, now(), later);
  });
  if (!to.link) return true;
  if (to.fresh)
    for (int i = 0; i < 2; ++i) start(to.link, i);
  if (!static_cast<relayed_pipe&>(*to.link->pipes[which].through).came(inner)) {
    all_->count("bad_seal");
    end(to.link, "a frame over the relay is not the other side's");
  }
  return true;
}

// -- the other frames of a link that is up ----

bool local_host::on(const link_ptr& of, int which, const ping_frame& what) {
  if (!what.stamp) return true;
  const auto state = state_.lock();
  // A host that sends pings and does not read the answers gets no more of them.
  if (of->pipes[which].through->queued_bytes() < most_answers)
    of->send(which == 1, frame_writer(frame_kind::pong).put(*what.stamp).done(), now());
  return true;
}

bool local_host::on(const link_ptr& of, int, const pong_frame& what) {
  const auto state = state_.lock();
  of->pong_came(what.stamp, now());
  return true;
}

bool local_host::on(const link_ptr& of, int which, const late_hello&) {
  return which == 0 || of->dialled;
}

bool local_host::on(const link_ptr&, int, const late_refusal&) {
  return true;
}

bool local_host::on(const link_ptr& of, int, const watch_frame& what) {
  {
    const auto state = state_.lock();
    if (of->watched.size() >= most_watched) return false;
    of->watched.insert(what.ordinal);
  }
  if (!all_->net->lives({host_, what.ordinal})) actor_ended(what.ordinal);
  return true;
}

bool local_host::on(const link_ptr& of, int, const ended_frame& what) {
  {
    const auto state = state_.lock();
    if (auto* r = state->hosts.find(of->host)) r->watching.erase(what.ordinal);
  }
  all_->net->gone(host_, of->host, what.ordinal, true);
  return true;
}

bool local_host::on(const link_ptr& of, int, const where_is_frame& what) {
  state_.lock()->answer_where(*of, what.node, now());
  return true;
}

bool local_host::on(const link_ptr& of, int, const node_at_frame& what) {
  apply([&](host_state& state, deferred& later) { state.learn_where(*of, what, now(), later); });
  return true;
}

bool local_host::on(const link_ptr& of, int, const introduce_frame& what) {
  auto service = caf::actor_cast<caf::actor>(all_->net->address_at(of->node, what.service));
  const auto told = state_.lock()->introduced(*of, std::move(service), now());
  if (told && all_->options.on_up) all_->options.on_up(host_, *told);
  return true;
}

bool local_host::on(const link_ptr& of, int which, const leaving_frame&) {
  if (state_.lock()->goodbye_came(*of, which)) left(of);
  return true;
}

bool local_host::on(const link_ptr& of, int which, const relay_end_frame& what) {
  if (of->relayed) return false;
  const auto ended = state_.lock()->relay_ended(of, which, what, now());
  if (ended) end(ended, "the relay says that the link has ended");
  return true;
}

bool local_host::on(const link_ptr& of, int, const revocation_list_number_frame& what) {
  if (revoked_.is_news_to(what.number)) send_revocation_list(of);
  return true;
}

bool local_host::on(const link_ptr& of, int, const revocation_list_frame& what) {
  if (revoked_.enabled()) revocation_list_came(of, what.pem);
  return true;
}

} // namespace shoal::netem::wire
