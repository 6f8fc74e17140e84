#include "scenarios/inference/inference_process.hpp"

#include "actors/conduct/conducts.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/dht/messages.hpp"
#include "actors/inference/blocking_passes.hpp"
#include "actors/inference/inference_client.hpp"
#include "actors/inference/inference_server.hpp"
#include "actors/inference/observations.hpp"
#include "actors/inference/pass_client.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"
#include "netem/wire/plain_words.hpp"
#include "scenarios/inference/inference_swarm.hpp"
#include "scenarios/inference/model_pieces.hpp"
#include "scenarios/inference/process_parts.hpp"
#include "scenarios/runner/member_keys.hpp"
#include "scenarios/runner/operator_answers.hpp"
#include "scenarios/runner/world.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace shoal::scenarios {

namespace {

using namespace std::chrono_literals;

constexpr data_rate no_limit{1e12}; // the rate of emulated lines

} // namespace

class inference_process::running {
public:
  explicit running(inference_process_options options)
      : options_(std::move(options)), model_(*options_.model) {}

  ~running() {
    if (in_ == nullptr) return;
    const auto all = [this] {
      std::lock_guard guard(mutex_);
      std::vector<std::uint64_t> out;
      for (const auto& [number, text] : texts_) out.push_back(number);
      return out;
    }();
    for (const auto number : all) cancel(number);
    for (const auto& each : passes_)
      if (const auto open = each.lock()) open->close("the process has ended");
    in_->clock().settle();
    ends_ = true;
    in_->clock().request_stop();
    if (clock_.joinable()) clock_.join();
    if (options_.place && client_host_ != nullptr) in_->wire()->leave(in_->index_of(*client_host_));
    bootstrap_ = client_node_ = nullptr;
    servers_.clear();
    in_->stop(); // callbacks of the network use `in_` until then
    in_.reset();
  }

  result<void> start() {
    const auto layers = static_cast<std::uint32_t>(model_.model->layers());
    actors::layer_span held{layers, 0};
    for (const auto& each : options_.servers) {
      if (each.first >= each.last || each.last > layers)
        return failure{fmt::format("there are no layers {}: the model has the layers 0:{}",
                                   to_text(each), layers)};
      held = {std::min(held.first, each.first), std::max(held.last, each.last)};
    }
    if (options_.chosen_layers &&
        (*options_.chosen_layers == 0 || *options_.chosen_layers > layers))
      return failure{fmt::format("a server cannot choose {} layers: the model has {}",
                                 *options_.chosen_layers, layers)};
    if (held.last == 0) held = {};
    pieces_ = pieces_of(model_, held, options_.weights);
    digest_ = model_.identity().prefix();
    world_options in;
    in.mode = netem::time_mode::wall_clock;
    in.compute_threads = options_.compute_threads;
    in.detection_time = options_.detection_time;
    in.on_event = [](const netem::delivered_event&) {};
    if (options_.place) in.real = network();
    in_ = std::make_unique<world>(std::move(in));
    in_->on_observation = [this](const actors::host& from, const actors::observation& seen) {
      observe(from, seen);
    };
    auto& net = in_->net();
    region_ = net.add_region("here");
    net.set_path(region_, region_, {});
    if (options_.place) {
      auto& host = boot(options_.place->name);
      client_node_ = start_node(host);
      for (const auto& each : options_.servers) start_server(host, client_node_, held_ = each);
      if (options_.chosen_layers) start_server(host, client_node_, {});
      client_host_ = &host;
    } else {
      auto& host = boot("client");
      client_node_ = start_node(host);
      client_host_ = &host;
      for (std::size_t i = 0; i < options_.servers.size(); ++i) {
        auto& on = boot(fmt::format("server-{}", i));
        start_server(on, start_node(on), options_.servers[i]);
      }
    }
    if (const auto why = in_->broken()) return failure{*why};
    clock_ = std::thread([this] {
      while (!ends_ && !in_->broken()) in_->clock().run(in_->clock().now() + 100ms);
    });
    return {};
  }

  std::uint64_t write(writing what) {
    auto text = std::make_shared<text_in_work>();
    text->what = std::move(what);
    const auto number = ++numbers_;
    {
      std::lock_guard guard(mutex_);
      texts_.emplace(number, text);
    }
    actors::inference_client_config config;
    config.model = model_.name;
    config.model_digest = digest_;
    config.ends = pieces_.ends;
    config.push = options_.push;
    config.sampling = text->what.sampling;
    config.seed = text->what.seed;
    config.draws_as = request_of(0);
    config.instance = number;
    config.stop = model_.stop;
    config.dht = client_node_;
    if (!options_.place) config.retry = 50ms; // the servers are about to announce themselves
    config.check = options_.check;
    config.on_token = [text, checks = options_.check > 0](std::uint64_t, learn::token_id token) {
      std::lock_guard guard(text->guard);
      text->unchecked.push_back(token);
      if (!checks) text->tell(text->told + 1);
    };
    config.on_checked = [text](std::uint64_t, std::size_t tokens) {
      std::lock_guard guard(text->guard);
      text->tell(tokens);
    };
    config.on_retract = [this, text, number](std::uint64_t, std::size_t kept) {
      std::lock_guard guard(text->guard);
      const auto wrong = text->take_back(kept);
      if (wrong == 0) return;
      in_->clock().at(in_->clock().now(), [this, number, wrong] {
        finished(number, fmt::format("the last {} tokens are wrong, and the checks before them did "
                                     "not find that: write the text again",
                                     wrong));
      });
    };
    // The client must not end the text before its handles are here.
    std::unique_lock guard(text->guard);
    text->client = in_->spawn<actors::inference_client>(*client_host_, std::move(config));
    text->reader = in_->spawn<answer_reader>(
        *client_host_, [this, number](const std::string& why) { finished(number, why); });
    tell(text->client,
         actors::generate_request{text->reader, number, text->what.prompt, text->what.tokens});
    return number;
  }

  void cancel(std::uint64_t number) {
    const auto text = take(number);
    if (!text) return;
    std::lock_guard guard(text->guard);
    if (std::exchange(text->over, true)) return;
    tell(text->client, actors::tick{actors::inference_client::leave, 0});
    tell(text->reader, actors::tick{});
    text->client = text->reader = nullptr;
  }

  std::size_t writes() const {
    std::lock_guard guard(mutex_);
    return texts_.size();
  }

  std::shared_ptr<learn::remote_layers> layers(const std::string& adapter) {
    actors::pass_client_config config;
    config.model = model_.name;
    config.model_digest = digest_;
    config.layers = static_cast<std::uint32_t>(model_.model->layers());
    config.width = model_.model->width();
    config.dht = client_node_;
    if (!options_.place) config.retry = 50ms; // as in write()
    const auto client = in_->spawn<actors::pass_client>(*client_host_, std::move(config));
    actors::blocking_passes::options how;
    how.layers = model_.model->layers();
    how.width = model_.model->width();
    how.adapter = adapter;
    const auto reader = std::make_shared<caf::actor>();
    how.forward = [this, client, reader](actors::layers_forward m) {
      m.reply_to = *reader;
      tell(client, std::move(m));
    };
    how.backward = [this, client](actors::layers_backward m) { tell(client, std::move(m)); };
    auto out = std::make_shared<actors::blocking_passes>(std::move(how));
    *reader = in_->spawn<pass_reader>(*client_host_, std::weak_ptr(out));
    std::lock_guard guard(mutex_);
    passes_.push_back(out);
    return out;
  }

  void drain() {
    for (const auto& each : servers_) tell(each, actors::tick{actors::inference_server::drain, 0});
  }
  bool told_to_leave() const { return told_to_leave_; }
  bool drained() const { return drained_ == servers_.size(); }
  std::optional<std::string> broken() const { return in_->broken(); }
  std::string listens_at() const {
    return options_.place && options_.place->listen
               ? in_->wire()->listens_at(in_->index_of(*client_host_)).text()
               : std::string{};
  }

private:
  std::shared_ptr<text_in_work> take(std::uint64_t number) {
    std::lock_guard guard(mutex_);
    const auto found = texts_.find(number);
    if (found == texts_.end()) return nullptr;
    auto out = std::move(found->second);
    texts_.erase(found);
    missing_.erase(number);
    return out;
  }

  void finished(std::uint64_t number, const std::string& why) {
    const auto text = take(number);
    if (!text) return;
    std::lock_guard guard(text->guard);
    if (why.empty()) text->tell(text->told + text->unchecked.size());
    if (std::exchange(text->over, true)) return;
    tell(text->client, actors::tick{actors::inference_client::leave, 0});
    text->client = text->reader = nullptr;
    if (text->what.on_end) text->what.on_end(why);
  }

  template <class Message>
  void tell(const caf::actor& whom, Message what) {
    if (whom)
      in_->clock().as_host(in_->index_of(*client_host_),
                           [&] { caf::anon_send(whom, std::move(what)); });
  }

  actors::host& boot(const std::string& name) {
    auto& host = in_->boot(in_->net().add_machine(
        {.name = name, .region = region_, .up = no_limit, .down = no_limit}));
    std::lock_guard guard(mutex_);
    names_[host.id()] = name;
    return host;
  }

  caf::actor start_node(actors::host& on) {
    actors::dht_config config;
    config.signatures = signatures_;
    const auto index = in_->index_of(on);
    if (options_.place)
      config.serves = options_.place->listen.has_value();
    else if (bootstrap_)
      config.bootstraps.push_back(bootstrap_);
    auto node = in_->spawn<actors::dht_node>(on, std::move(config));
    if (!bootstrap_) bootstrap_ = node;
    if (options_.place) {
      {
        std::lock_guard guard(mutex_);
        own_node_ = node;
      }
      in_->wire()->introduce(index, node);
      for (const auto& other : in_->wire()->connected_peers(index)) met(index, other);
      for (const auto& where : options_.place->join) in_->wire()->join(index, where);
    }
    return node;
  }

  /// A server without `layers` chooses them itself.
  void start_server(actors::host& on, const caf::actor& node, actors::layer_span layers) {
    actors::inference_server_config config;
    if (const auto found = options_.conducts.find(servers_.size());
        found != options_.conducts.end()) {
      actors::conduct_options conduct;
      conduct.kind = found->second;
      config.conduct = actors::make_conduct(conduct, on);
    }
    config.model = model_.name;
    config.model_digest = digest_;
    if (layers.count() == 0) {
      auto& by = config.placement.emplace();
      by.layers = static_cast<std::uint32_t>(model_.model->layers());
      by.count = *options_.chosen_layers;
      by.load = [this](actors::layer_span what) {
        auto pieces = pieces_of(model_, what, options_.weights);
        return actors::held_blocks{
            {pieces.layers.begin() + what.first, pieces.layers.begin() + what.last}, {}};
      };
      config.layer_time = measure_layer_time(by.load({0, 1}).blocks);
    }
    config.layers = layers;
    config.held.blocks.assign(pieces_.layers.begin() + layers.first,
                              pieces_.layers.begin() + layers.last);
    config.limits = options_.limits;
    if (layers.count() > 0)
      config.layer_time = options_.place ? measure_layer_time(config.held.blocks) : duration{};
    config.record_lifetime = options_.record_lifetime;
    config.dht = node;
    servers_.push_back(in_->spawn<actors::inference_server>(on, std::move(config)));
  }

  real_network network() {
    const auto& place = *options_.place;
    real_network out;
    out.alone = true;
    out.paced = false;
    auto& wire = out.options;
    wire.scenario = swarm_text(model_);
    wire.difference = other_model;
    wire.on_up = [this](netem::host_index mine, const netem::wire::connected_peer& other) {
      if (!other.service)
        say("linked with " + netem::wire::host_in_words(other.name, other.address));
      in_->met(other.host, other.name);
      const auto peer = in_->peer_id_of(other.host);
      {
        std::lock_guard guard(mutex_);
        // A member may restart as often as it likes.
        if (names_.size() >= most_names) names_.clear();
        names_.insert_or_assign(peer, other.name);
        refused_.erase(other.address);
      }
      met(mine, other);
    };
    wire.on_down = [this](netem::host_index, const netem::wire::connected_peer& other,
                          const std::string& why) {
      say(netem::wire::end_in_words(other.name, other.address, why));
    };
    wire.on_revocation_list = [this](netem::host_index, const std::string& text) { say(text); };
    wire.on_refused = [this](netem::host_index, const std::string& where, netem::wire::refusal why,
                             const std::string& text, bool fatal) {
      using netem::wire::refusal;
      if (why == refusal::ourselves) return;
      const auto name = why == refusal::none ? std::string{} : std::string(name_of(why));
      const auto line = fmt::format("no link with {}: {}{}{}", where, name,
                                    name.empty() || text.empty() ? "" : ", ", text);
      {
        // The network dials repeatedly. People read the first failure of a kind.
        std::lock_guard guard(mutex_);
        if (refused_.size() >= most_names) refused_.clear();
        if (!refused_[where].insert(name).second && !fatal) return;
      }
      if (fatal)
        in_->breaks(line);
      else
        say(line);
    };
    if (place.keys) {
      const auto& keys = *place.keys;
      wire.credentials = keys.tls;
      wire.admits = keys.admits;
      wire.keys = {keys.key, keys.certificate};
      out.keys = member_keys_of(place.name, keys.key, keys.certificate);
      out.bans = place.bans;
    }
    wire.on_control_request = [this](netem::host_index, const netem::wire::control_client& who,
                                     const std::string& question) {
      return answer_to(who, question,
                       {options_.place->name, [this] { return report(); },
                        [this] { return !told_to_leave_.exchange(true); }, options_.say});
    };
    out.host = [this](const std::string&) {
      return netem::wire::host_options{
          .name = {}, .listen = options_.place->listen, .advertise = options_.place->advertise};
    };
    return out;
  }

  node_report report() {
    auto out = report_of(*options_.place, model_, in_->clock().now());
    if (servers_.empty()) out.role = "client";
    out.leaving = told_to_leave_;
    out.neighbours = neighbours_of(in_->wire()->connected_peers(in_->index_of(*client_host_)));
    std::lock_guard guard(mutex_);
    if (held_.count() > 0) out.phase = to_text(held_);
    return out;
  }

  void say(const std::string& line) {
    if (options_.say && !ends_) options_.say(line);
  }

  /// Introduces the DHT nodes of two hosts that have a link.
  void met(netem::host_index mine, const netem::wire::connected_peer& other) {
    if (!other.service) return;
    const auto node = [this] {
      std::lock_guard guard(mutex_);
      return own_node_;
    }();
    if (node)
      in_->clock().as_host(mine, [&] { caf::anon_send(node, actors::introduced{other.service}); });
  }

  std::string name_of_peer(actors::peer_id server) const {
    std::lock_guard guard(mutex_);
    const auto found = names_.find(server);
    return found == names_.end() ? fmt::format("server {:.6}", fmt::format("{:016x}", server))
                                 : found->second;
  }

  void tell_missing(std::uint64_t number, const std::string& text) {
    {
      std::lock_guard guard(mutex_);
      const auto found = missing_.find(number);
      if (found == missing_.end() || found->second != text || !texts_.contains(number)) return;
    }
    options_.on_news({inference_news::kind::missing, number, text, {}});
  }

  /// Whether this is the first check of the text that lacks a server. People read one line of it.
  bool is_first_gap(std::uint64_t number) {
    std::lock_guard guard(mutex_);
    const auto found = texts_.find(number);
    return found != texts_.end() && !std::exchange(found->second->said_unchecked, true);
  }

  void observe(const actors::host&, const actors::observation& seen) {
    if (actors::holds_alternative<actors::server_drained>(seen)) ++drained_;
    if (const auto* taken = actors::get_if<actors::layers_taken>(&seen)) {
      {
        std::lock_guard guard(mutex_);
        held_ = taken->layers;
      }
      say(fmt::format("serves layers {}{}", to_text(taken->layers),
                      taken->before.count() > 0 ? ", and no longer " + to_text(taken->before)
                                                : ""));
    }
    if (!options_.on_news) return;
    if (const auto* route = actors::get_if<actors::route_chosen>(&seen)) {
      std::lock_guard guard(mutex_);
      missing_.erase(route->request);
    } else if (const auto* missing = actors::get_if<actors::layers_missing>(&seen)) {
      // Soon after the start, or after a loss, records may still be on their way.
      const auto text = missing->text();
      {
        std::lock_guard guard(mutex_);
        missing_.insert_or_assign(missing->request, text);
      }
      in_->clock().at(in_->clock().now() + missing_for,
                      [this, number = missing->request, text] { tell_missing(number, text); });
      return;
    }
    const auto news =
        news_of(seen, [this](actors::peer_id server) { return name_of_peer(server); });
    if (!news) return;
    if (const auto* checked = actors::get_if<actors::outputs_checked>(&seen);
        checked != nullptr && !checked->disputed && !is_first_gap(checked->request))
      return;
    options_.on_news(*news);
  }

  static constexpr std::size_t most_names = 4096;
  static constexpr duration missing_for = 2s;

  const inference_process_options options_;
  const learn::served_model& model_;
  model_pieces pieces_;
  std::uint64_t digest_ = 0;
  std::unique_ptr<world> in_;
  netem::region_index region_ = 0;
  std::shared_ptr<actors::signature_cache> signatures_ =
      std::make_shared<actors::signature_cache>(4096);
  caf::actor bootstrap_, client_node_;
  std::vector<caf::actor> servers_;
  actors::host* client_host_ = nullptr;
  std::atomic<std::uint64_t> numbers_{0};
  std::atomic<std::size_t> drained_{0};
  std::atomic<bool> ends_{false}, told_to_leave_{false};
  mutable std::mutex mutex_; // guards the members below
  std::map<std::uint64_t, std::shared_ptr<text_in_work>> texts_;
  std::vector<std::weak_ptr<actors::blocking_passes>> passes_;
  std::map<std::uint64_t, std::string> missing_; // texts that lack servers, and the news of it
  std::map<actors::peer_id, std::string> names_;
  std::map<std::string, std::set<std::string>> refused_; // by address
  actors::layer_span held_;                              // by the server of this place
  caf::actor own_node_;
  std::thread clock_;
};

inference_process::inference_process(std::unique_ptr<running> made) : running_(std::move(made)) {}
inference_process::~inference_process() = default;

result<std::unique_ptr<inference_process>>
inference_process::start(inference_process_options options) {
  SHOAL_CHECK(options.model != nullptr, "a process serves a model");
  SHOAL_CHECK(!options.place || options.servers.size() + (options.chosen_layers ? 1 : 0) <= 1,
              "a host has one server");
  SHOAL_CHECK(options.place || !options.chosen_layers, "a server among others chooses its layers");
  auto made = std::make_unique<running>(std::move(options));
  if (auto started = made->start(); !started) return failure{started.error()};
  return std::unique_ptr<inference_process>(new inference_process(std::move(made)));
}

std::uint64_t inference_process::write(writing what) {
  return running_->write(std::move(what));
}
void inference_process::cancel(std::uint64_t which) {
  running_->cancel(which);
}
std::size_t inference_process::writes() const {
  return running_->writes();
}
std::shared_ptr<learn::remote_layers> inference_process::layers(const std::string& adapter) {
  return running_->layers(adapter);
}
void inference_process::drain() {
  running_->drain();
}
bool inference_process::told_to_leave() const {
  return running_->told_to_leave();
}
bool inference_process::drained() const {
  return running_->drained();
}
std::optional<std::string> inference_process::broken() const {
  return running_->broken();
}
std::string inference_process::listens_at() const {
  return running_->listens_at();
}

} // namespace shoal::scenarios
