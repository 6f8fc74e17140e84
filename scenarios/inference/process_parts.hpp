// The parts of an inference_process: the actors that take answers, and the text on which the hosts
// of a swarm agree. Private to inference_process.cpp.
#pragma once

#include "actors/inference/blocking_passes.hpp"
#include "actors/inference/messages.hpp"
#include "actors/inference/observations.hpp"
#include "actors/observe.hpp"
#include "actors/protocol_actor.hpp"
#include "netem/wire/network.hpp"
#include "scenarios/inference/inference_process.hpp"
#include "scenarios/inference/model_pieces.hpp"
#include "scenarios/observe/node_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace shoal::scenarios {

/// A text that is being written. Its mutex is held during callbacks.
struct text_in_work {
  std::mutex guard;
  bool over = false;
  writing what;
  caf::actor client, reader;
  // With checks.
  std::deque<learn::token_id> unchecked; ///< chosen, and not told yet
  std::size_t told = 0;                  ///< tokens
  bool said_unchecked = false;           ///< guarded by the process's mutex

  /// Tells the tokens up to the first `count`. Requires: the guard is held.
  void tell(std::size_t count) {
    for (; told < count && !unchecked.empty(); ++told) {
      const auto token = unchecked.front();
      unchecked.pop_front();
      if (!over && what.on_token) what.on_token(token);
    }
  }
  /// The text goes back to its first `kept` tokens. Returns the tokens that were told and are
  /// wrong. Requires: the guard is held.
  std::size_t take_back(std::size_t kept) {
    unchecked.resize(std::min(unchecked.size(), kept > told ? kept - told : 0));
    return told - std::min(told, kept);
  }
};

/// Takes the answer of a client, and ends. A text that its servers dispute is not told to its end.
class answer_reader final : public actors::protocol_actor {
public:
  answer_reader(caf::actor_config& config, actors::host& on,
                std::function<void(const std::string&)> then)
      : protocol_actor(config, on), then_(std::move(then)) {}
  caf::behavior make_behavior() override {
    return {[this](const actors::generated& m) {
              then_(m.disputed
                        ? "servers differ about the last words, and no further server decides: "
                          "they are not told. Try again when more servers are there"
                        : m.why);
              quit();
            },
            [this](const actors::tick&) { quit(); }};
  }
  void on_exit() override {
    then_ = nullptr;
    protocol_actor::on_exit();
  }

private:
  std::function<void(const std::string&)> then_;
};

/// Takes the answers of a pass_client for a program that waits for them.
class pass_reader final : public actors::protocol_actor {
public:
  pass_reader(caf::actor_config& config, actors::host& on,
              std::weak_ptr<actors::blocking_passes> to)
      : protocol_actor(config, on), to_(std::move(to)) {}
  caf::behavior make_behavior() override {
    return {[this](const actors::layers_done& m) {
      if (const auto to = to_.lock()) to->answer(m);
    }};
  }

private:
  std::weak_ptr<actors::blocking_passes> to_;
};

/// The text on which all hosts of a swarm agree.
inline std::string swarm_text(const learn::served_model& model) {
  return fmt::format("inference\n{}\n{}\n", model.name, model.identity().hex());
}

inline std::string other_model(const std::string& mine, const std::string& theirs) {
  const auto name = [](const std::string& text) {
    const auto from = text.find('\n');
    if (!text.starts_with("inference\n")) return std::string{};
    return text.substr(from + 1, text.find('\n', from + 1) - from - 1);
  };
  const auto here = name(mine), there = name(theirs);
  if (there.empty()) return "it trains a model, and serves none";
  return here == there ? fmt::format("its model {} has other weights than the one here", there)
                       : fmt::format("it serves the model {}, and not {}", there, here);
}

/// The news of a route, of a lost server or of a check. Empty for other observations. name_of(peer)
/// names a server.
template <class Name>
std::optional<inference_news> news_of(const actors::observation& seen, Name name_of) {
  inference_news out;
  if (const auto* route = actors::get_if<actors::route_chosen>(&seen)) {
    out.what = inference_news::kind::route;
    out.writing = route->request;
    for (const auto& hop : route->hops) {
      out.hops.push_back({name_of(hop.server), hop.layers});
      out.text += fmt::format("{}{} on {}", out.text.empty() ? "layers " : ", ",
                              to_text(hop.layers), out.hops.back().server);
    }
    return out;
  }
  if (const auto* wrong = actors::get_if<actors::wrong_server>(&seen)) {
    out.what = inference_news::kind::checked;
    out.writing = wrong->request;
    out.text = fmt::format("{} computes wrongly: {} token{} written again", name_of(wrong->server),
                           wrong->retracted, wrong->retracted == 1 ? " is" : "s are");
    return out;
  }
  if (const auto* waits = actors::get_if<actors::check_waits>(&seen)) {
    out.what = inference_news::kind::checked;
    out.writing = waits->request;
    out.text = waits->text();
    return out;
  }
  const auto* checked = actors::get_if<actors::outputs_checked>(&seen);
  if (checked != nullptr && (checked->disputed || checked->unchecked > 0)) {
    out.what = inference_news::kind::checked;
    out.writing = checked->request;
    out.text = checked->disputed
                   ? "two servers differ, and no third one decides"
                   : "no other server holds some of the layers: they are not checked, and "
                     "words appear at the end";
    return out;
  }
  const auto* lost = actors::get_if<actors::span_lost>(&seen);
  if (lost == nullptr) return std::nullopt;
  out.what = inference_news::kind::lost;
  out.writing = lost->request;
  out.text = fmt::format("{}: {}", name_of(lost->server), lost->reason());
  return out;
}

/// The parts of a server's report that do not change, after a life of `up`.
inline node_report report_of(const inference_place& place, const learn::served_model& model,
                             duration up) {
  node_report out;
  out.name = place.name;
  out.scenario = model.name;
  out.version = place.version;
  out.role = "server";
  out.phase = "joining";
  out.up_seconds = to_seconds(up);
  return out;
}

} // namespace shoal::scenarios
