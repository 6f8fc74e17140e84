#include "netem/bulk_lines.hpp"

#include <algorithm>

namespace shoal::netem {

static_assert(topology::most_links <= transport::most_links, "every route is a path");

namespace {

/// A connection closes after so long without bulk; later bulk opens another one (model `tcp`).
constexpr duration idle_connection = std::chrono::seconds(60);

} // namespace

bulk_lines::bulk_lines(message_table& messages, paths& ways, const tcp_options& tcp,
                       bool keeps_records)
    : messages_(messages), paths_(ways), flows_(ways.model(), tcp), keeps_records_(keeps_records),
      count_(ways.model() == transfer_model::tcp ? tcp.connections : 1), windows_(count_) {
  if (keeps_records)
    flows_.on_rate([this](const rate_change& what) {
      if (auto& record = connections_[what.tag].record)
        record->steps.push_back({what.at, what.bits_per_second, what.why, what.link, what.sharers});
    });
}

void bulk_lines::set_capacities(link_id up, data_rate up_rate, link_id down, data_rate down_rate,
                                duration now, surroundings& around) {
  flows_.set_capacity(up, up_rate.bits_per_second, now);
  flows_.set_capacity(down, down_rate.bits_per_second, now);
  note_change(around);
}

duration bulk_lines::queueing_delay(host_index from, host_index to, duration now) const {
  duration out{};
  if (flows_.model() == transfer_model::tcp && flows_.active() > 0)
    for (const auto link : paths_.route(from, to, no_host).links())
      if (flows_.flows_on(link) > 0) out += flows_.queueing_delay(link, now);
  return out;
}

// -- lines ----------------------------------------------------------------------------------------

std::uint32_t bulk_lines::connect(host_index from, host_index to) {
  auto& named = line_of_[pair_of(from, to)];
  if (named != 0) return named - 1;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(lines_.size()));
    lines_.emplace_back();
    connections_.resize(lines_.size() * count_);
  }
  const auto line = free_.back();
  free_.pop_back();
  auto& made = lines_[line] = {};
  made.from = from;
  made.to = to;
  named = line + 1;
  return line;
}

void bulk_lines::forget_if_idle(std::uint32_t index) {
  const auto& line = lines_[index];
  if (line.first != no_index || line.under_way > 0) return;
  line_of_.erase(pair_of(line.from, line.to));
  free_.push_back(index);
}

void bulk_lines::list(std::uint32_t index) {
  by_sender_.push_front(lines_[index].from, index);
  by_receiver_.push_front(lines_[index].to, index);
  ++sending_;
}

void bulk_lines::unlist(std::uint32_t index) {
  by_sender_.remove(lines_[index].from, index);
  by_receiver_.remove(lines_[index].to, index);
  --sending_;
}

/// The TCP window of a connection. A window that was idle for too long starts anew.
tcp_window& bulk_lines::window_of(const line& of, std::uint32_t which, duration now) {
  auto& windows = windows_[which];
  if (windows.size() >= windows.capacity())
    windows.erase_if(
        [now](std::uint64_t, const tcp_window& w) { return now - w.used_until > idle_connection; });
  auto& window = windows[pair_of(of.from, of.to)];
  if (now - window.used_until > idle_connection) window = {};
  return window;
}

// -- messages -------------------------------------------------------------------------------------

bool bulk_lines::append(std::uint32_t number) {
  auto& message = messages_[number];
  const auto index = message.line = connect(message.from.host, message.to.host);
  auto& line = lines_[index];
  const bool first = line.first == no_index;
  if (first)
    line.first = number;
  else
    messages_[line.last].next = number;
  if (line.next == no_index) line.next = number;
  line.last = number;
  if (first) list(index);
  return line.busy < count_;
}

void bulk_lines::arrived(std::uint32_t line) {
  --lines_[line].under_way;
  forget_if_idle(line);
}

duration bulk_lines::behind_last(std::uint64_t pair, duration at) const {
  const auto* line = line_of_.find(pair);
  return line != nullptr ? std::max(at, lines_[*line - 1].last_arrival) : at;
}

void bulk_lines::start_all(std::uint32_t index, duration now, surroundings& around) {
  auto& line = lines_[index];
  while (line.next != no_index && line.busy < count_) {
    do line.latest = (line.latest + 1) % count_;
    while (connections_of(index)[line.latest].message != no_index);
    start_on(index, line.latest, now, around);
  }
}

void bulk_lines::start_on(std::uint32_t index, std::uint32_t which, duration now,
                          surroundings& around) {
  auto& line = lines_[index];
  auto& on = connections_of(index)[which];
  on.message = line.next;
  auto& message = messages_[on.message];
  auto bytes = message.bytes - message.begun;
  if (count_ > 1) bytes = std::min(bytes, longest_piece);
  message.begun += bytes;
  ++message.transfers;
  if (message.begun == message.bytes) line.next = message.next;
  ++line.busy;
  ++transferring_;
  const auto relay = message.relay;
  const auto duplicate = paths_.between(line.from, line.to).quality.duplicate;
  const auto path = paths_.route(line.from, line.to, relay);
  topology::route back;
  transfer_request what;
  static_cast<path_now&>(what) = paths_.conditions(line.from, line.to, relay);
  what.path = path.links();
  what.bytes = bytes;
  if (duplicate > 0)
    what.bytes += static_cast<std::uint64_t>(duplicate * static_cast<double>(bytes));
  what.tag = std::uint64_t{index} * count_ + which;
  if (flows_.model() == transfer_model::tcp) what.connection = window_of(line, which, now);
  if (flows_.model() == transfer_model::lv08) {
    back = paths_.route(line.to, line.from, relay);
    what.way_back = back.links();
  }
  if (keeps_records_) begin_record(on, bytes, now);
  on.flow = flows_.start(what, now);
  note_change(around);
  if (around.blocked(line.from, line.to, relay)) stop(index, now, around);
}

void bulk_lines::begin_record(connection& on, std::uint64_t bytes, duration now) {
  const auto& message = messages_[on.message];
  on.record = std::make_unique<transfer_record>();
  auto& record = *on.record;
  record.number = next_transfer_++;
  record.from = message.from;
  record.to = message.to;
  record.type = message.type;
  record.bytes = bytes;
  record.sent = message.sent;
  record.begun = now;
  record.round_trip = paths_.round_trip(message.from.host, message.to.host, message.relay);
}

void bulk_lines::end_record(connection& on, duration left, duration arrives, bool cut,
                            surroundings& around) {
  if (!on.record) return;
  on.record->left = left;
  on.record->arrives = arrives;
  on.record->cut = cut;
  around.ended(std::move(on.record));
}

void bulk_lines::finish(duration now, surroundings& around) {
  std::vector<finished_transfer> done;
  flows_.advance(now, done);
  for (const auto& flow : done) transfer_ended(flow, now, around);
}

void bulk_lines::transfer_ended(const finished_transfer& flow, duration now, surroundings& around) {
  const auto index = static_cast<std::uint32_t>(flow.tag / count_);
  const auto which = static_cast<std::uint32_t>(flow.tag % count_);
  auto& line = lines_[index];
  auto& on = connections_[flow.tag];
  const auto number = std::exchange(on.message, no_index);
  auto& message = messages_[number];
  --line.busy;
  --transferring_;
  --message.transfers;
  message.left = flow.at;
  if (flows_.model() == transfer_model::tcp) window_of(line, which, flow.at) = flow.connection;
  const auto delay =
      flows_.delay_follows() ? paths_.drawn_delay(line.from, line.to, message.relay) : duration{};
  auto arrives = message.arrives = std::max(message.arrives, flow.at + delay);
  // A message that has left waits for the ones before it.
  while (line.first != no_index) {
    const auto at = line.first;
    const auto& each = messages_[at];
    if (at == line.next || each.transfers > 0) break;
    line.last_arrival = std::max(line.last_arrival, each.arrives);
    if (at == number) arrives = line.last_arrival;
    line.first = each.next;
    ++line.under_way;
    around.arrives(at, line.last_arrival);
  }
  end_record(on, flow.at, arrives, false, around);
  if (line.first != no_index)
    start_all(index, now, around);
  else
    unlist(index);
}

// -- changes of conditions ----------------------------------------------------------------------

void bulk_lines::retune_line(std::uint32_t index, duration now, surroundings& around) {
  const auto& line = lines_[index];
  if (line.first == no_index) return;
  for (const auto& each : connections_of(index))
    if (each.message != no_index && !each.stopped)
      flows_.change(each.flow, paths_.conditions(line.from, line.to, messages_[each.message].relay),
                    now);
  note_change(around);
}

void bulk_lines::retune_all(duration now, surroundings& around) {
  for (std::uint32_t line = 0; line < lines_.size(); ++line) retune_line(line, now, around);
}

void bulk_lines::retune(host_index host, duration now, surroundings& around) {
  for (auto at = by_sender_.first(host); at != no_index; at = by_sender_.next(at))
    retune_line(at, now, around);
  for (auto at = by_receiver_.first(host); at != no_index; at = by_receiver_.next(at))
    retune_line(at, now, around);
}

void bulk_lines::break_lines_of(host_index host, duration now, surroundings& around) {
  std::vector<std::uint32_t> broken;
  for (auto at = by_sender_.first(host); at != no_index; at = by_sender_.next(at))
    broken.push_back(at);
  for (auto at = by_receiver_.first(host); at != no_index; at = by_receiver_.next(at))
    broken.push_back(at);
  // Sorting makes the order independent of the lists.
  std::sort(broken.begin(), broken.end(), [this](std::uint32_t a, std::uint32_t b) {
    return pair_of(lines_[a].from, lines_[a].to) < pair_of(lines_[b].from, lines_[b].to);
  });
  for (const auto at : broken) break_index(at, now, around);
}

void bulk_lines::break_line(std::uint64_t pair, duration now, surroundings& around) {
  if (const auto* line = line_of_.find(pair)) break_index(*line - 1, now, around);
}

void bulk_lines::break_index(std::uint32_t index, duration now, surroundings& around) {
  auto& line = lines_[index];
  if (line.first == no_index) return;
  for (auto& each : connections_of(index)) {
    if (each.message == no_index) continue;
    flows_.cancel(each.flow, now);
    end_record(each, now, now, true, around);
    each = {};
    --transferring_;
  }
  for (auto at = line.first; at != no_index;) {
    const auto next = messages_[at].next;
    around.lost(at);
    at = next;
  }
  line.first = line.next = line.last = no_index;
  line.busy = 0;
  unlist(index);
  forget_if_idle(index);
  note_change(around);
}

void bulk_lines::stop(std::uint32_t index, duration now, surroundings& around) {
  auto& line = lines_[index];
  around.waits_at_cut(line.from, line.to, messages_[line.first].relay);
  bool any = false;
  for (auto& each : connections_of(index))
    if (each.message != no_index && !std::exchange(each.stopped, true)) {
      flows_.stop(each.flow, now);
      any = true;
    }
  if (any) note_change(around);
}

void bulk_lines::stop_blocked(duration now, surroundings& around) {
  for (std::uint32_t index = 0; index < lines_.size(); ++index) {
    const auto& line = lines_[index];
    if (line.first != no_index && around.blocked(line.from, line.to, messages_[line.first].relay))
      stop(index, now, around);
  }
}

void bulk_lines::stop_pair(std::uint64_t pair, duration now, surroundings& around) {
  if (const auto* line = line_of_.find(pair))
    if (lines_[*line - 1].first != no_index) stop(*line - 1, now, around);
}

std::optional<bulk_lines::stopped_transfer> bulk_lines::stopped(std::uint64_t pair) const {
  const auto* line = line_of_.find(pair);
  if (line == nullptr) return std::nullopt;
  const auto all = std::span(connections_).subspan(std::size_t{*line - 1} * count_, count_);
  const auto one =
      std::find_if(all.begin(), all.end(), [](const auto& each) { return each.stopped; });
  if (one == all.end()) return std::nullopt;
  return stopped_transfer{*line - 1, one->flow};
}

void bulk_lines::go_on(const stopped_transfer& what, duration now, surroundings& around) {
  auto& line = lines_[what.line];
  const auto all = connections_of(what.line);
  if (std::none_of(all.begin(), all.end(),
                   [&](const auto& each) { return each.stopped && each.flow == what.flow; }))
    return;
  const auto relay = messages_[line.first].relay;
  if (around.blocked(line.from, line.to, relay)) return;
  for (auto& each : all)
    if (std::exchange(each.stopped, false))
      flows_.go_on(each.flow, paths_.conditions(line.from, line.to, relay), now);
  note_change(around);
}

} // namespace shoal::netem
