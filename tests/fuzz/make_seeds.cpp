// Writes what the corpora begin with and nobody can type: messages, frames, records, certificates,
// checkpoints, codes, prepared pictures. From the root of the repository. Keys and certificates are
// new each time, in tests/fuzz/swarm_certificates.hpp, too; the private key in the corpus is
// nobody's.
#include "actors/all_messages.hpp"
#include "actors/messages.hpp"
#include "kernels/compress/codec.hpp"
#include "kernels/compress/top_k.hpp"
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/pictures/picture_set.hpp"
#include "kernels/learn/pictures/vq_vae.hpp"
#include "kernels/learn/tokenizer/train_tokenizer.hpp"
#include "kernels/learn/transformer_description.hpp"
#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "netem/wire/certificates.hpp"
#include "netem/wire/frames.hpp"
#include "netem/wire/message_codec.hpp"
#include "netem/wire/moderator.hpp"
#include "netem/wire/send_control_request.hpp"
#include "netem/wire/signed_text.hpp"
#include "scenarios/observe/node_report.hpp"
#include "tests/netem/wire/on_the_wire.hpp"

#include <caf/actor_system.hpp>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace {

using namespace shoal;
using namespace std::chrono_literals;

void write(const std::string& target, const std::string& name, std::string_view content) {
  const std::filesystem::path folder = "tests/fuzz/corpus/" + target;
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << content;
}

std::string text_of(std::span<const char> from) {
  return {from.begin(), from.end()};
}
std::string text_of(std::span<const std::byte> from) {
  return {reinterpret_cast<const char*>(from.data()), from.size()};
}
char first(unsigned value) {
  return static_cast<char>(value);
}

// ---- messages: the type's number, bytes beside it, the binary form behind the type's name
// ----------

template <class T>
void message(caf::actor_system& system, unsigned number, const char* name, T what,
             const char* seed = "") {
  const auto coded = netem::wire::encode(system, caf::make_message(std::move(what)).content());
  const auto binary = text_of(coded.binary);
  const auto beside = coded.beside_bytes();
  write("messages", std::string(name) + seed,
        std::string{first(number), first(beside % 256), first(beside / 256)} +
            binary.substr(1 + std::string_view("shoal::").size() + std::string_view(name).size()));
}

payload data(std::size_t size) {
  return payload{std::vector<std::byte>(size, std::byte{7})};
}

void messages() {
  using namespace actors;
  netem::system_config config(netem::time_mode::virtual_time, 1);
  register_messages(config);
  auto system = std::make_unique<caf::actor_system>(config);
  system->await_actors_before_shutdown(false);
  netem::fabric_options options;
  options.classify = [](const caf::type_erased_tuple&) { return netem::message_class{}; };
  auto net = std::make_unique<netem::fabric>(*system, std::move(options));
  {
    const auto somebody =
        caf::actor_cast<caf::actor>(net->address_at(netem::fabric::node_of("lab-3", 5), 3));
    signed_record held;
    held.entry.subkey = "lab-3";
    held.entry.address = somebody;
    held.entry.value = data(40);
    held.entry.expires_utc_ns = 1'700'000'000'000'000'000;
    query_answer answer;
    answer.records = {held};
    answer.nearer.resize(2);
    answer.nearer[0].address = somebody;
    record_put put;
    put.key = "progress";
    put.records = {held, held};
    member_info member;
    member.address = somebody;
    group_begun group;
    group.members = {member, member, member};
    group.boundaries = {0, 10, 20, 30};
    join_request join;
    join.member = member;
    part_chunk small, large;
    small.data = data(96);
    large.data = data(5000);
    reduced_chunk reduced;
    reduced.data = data(40);
    state_chunk state;
    state.data = data(4096);
    samples sent;
    sent.data = data(24);
    commit many;
    many.entries.resize(2);
    state_offer offered;
    offered.commits = {many};
    ledger_update update;
    update.rows.resize(3);
    message(*system, 13, "query_answer", answer);
    message(*system, 14, "record_put", put);
    message(*system, 12, "records_query", records_query{});
    message(*system, 28, "group_begun", group);
    message(*system, 24, "join_request", join);
    message(*system, 30, "part_chunk", small);
    message(*system, 30, "part_chunk", large, ".large");
    message(*system, 31, "reduced_chunk", reduced);
    message(*system, 45, "state_chunk", state);
    message(*system, 17, "samples", sent);
    message(*system, 20, "commit", many);
    message(*system, 41, "state_offer", offered);
    message(*system, 61, "ledger_update", update);
    message(*system, 57, "push_received", push_received{3});
  }
  net.reset();
  system.reset();
}

// ---- frames: the way in which they are read, then the bytes of a connection

std::string in_stream(const std::vector<std::string>& frames) {
  std::string out;
  for (const auto& each : frames) out += netem::wire::on_the_wire(each);
  return out;
}

void frames() {
  using namespace netem::wire;
  hello greeting;
  greeting.link = 0x0123456789abcdef;
  greeting.name = "lab-3";
  greeting.incarnation = 77;
  greeting.address = "10.0.0.5:7000";
  greeting.utc_ns = 1'700'000'000'000'000'000;
  greeting.scenario.fill(9);
  const auto hello_frame = text_of(to_frame(greeting).head);
  const auto message_frame = [](const message_head& head, std::size_t body) {
    std::vector<char> out;
    write(head, out);
    return text_of(out) + std::string(body, 'b');
  };
  message_head whole, pieces;
  whole.binary = 13;
  whole.beside = 20;
  pieces.binary = 30;
  pieces.beside = 8;
  pieces.more = 1;
  const std::string piece(1, first(static_cast<unsigned>(frame_kind::piece)));
  const auto where = text_of(frame_writer(frame_kind::node_at)
                                 .put(node_key{})
                                 .put(std::string_view("lab-3"))
                                 .put(std::string_view("[::1]:7000"))
                                 .done()
                                 .head);
  const auto relayed = text_of(to_bytes(relayed_head{1, {}, 5})) + hello_frame;
  write("frames", "hello", first(0) + in_stream({hello_frame, where}));
  write(
      "frames", "message",
      first(4) +
          in_stream({message_frame(whole, whole.body()),
                     text_of(frame_writer(frame_kind::watch).put(std::uint32_t{3}).done().head)}));
  write("frames", "pieces",
        first(0) + in_stream({message_frame(pieces, 10),
                              piece + std::string(7, '\0') + std::string(20, 'c'),
                              piece + std::string(7, '\0') + std::string(10, 'd'), relayed}));
  const auto number = [](frame_kind kind, std::uint64_t value) {
    return text_of(frame_writer(kind).put(value).done().head);
  };
  const auto node_and = [](frame_kind kind) {
    return frame_writer(kind).put(node_key{7, {1, 2, 3}});
  };
  write("frames", "list",
        first(0) + in_stream({number(frame_kind::revocation_list_number, 3),
                              text_of(frame_writer(frame_kind::revocation_list)
                                          .put(std::string_view("-----BEGIN X509 CRL-----\n"))
                                          .done()
                                          .head)}));
  write("frames", "ping",
        first(0) + in_stream({text_of(frame_writer(frame_kind::ping).done().head),
                              number(frame_kind::ping, 5), number(frame_kind::pong, 5)}));
  write(
      "frames", "relay",
      first(0) +
          in_stream({text_of(node_and(frame_kind::where_is).done().head),
                     number(frame_kind::introduce, 9),
                     text_of(node_and(frame_kind::relay_end).put(std::uint64_t{5}).done().head)}));
  write("frames", "leaving",
        first(0) +
            in_stream({text_of(frame_writer(frame_kind::ended).put(std::uint32_t{3}).done().head),
                       text_of(frame_writer(frame_kind::leaving).done().head)}));
  write("frames", "refused",
        first(0) + in_stream({text_of(frame_writer(frame_kind::refused)
                                          .put(std::uint8_t{2})
                                          .put(std::string_view("the clock is off"))
                                          .done()
                                          .head)}));
  write("frames", "answer", first(1) + text_of(to_frame(control_answer{true, "{}"}).head));
  write("frames", "address", first(2) + std::string("lab-3.example.org:7000"));
  write("frames", "address.v6", first(2) + std::string("[::1]:65535"));
  write("frames", "tls", first(131) + std::string("\x16\x03\x01", 3));
  write("frames", "http2", first(3) + std::string("PRI"));
}

// ---- records
// ------------------------------------------------------------------------------------------

void records() {
  const auto put = [](unsigned what, unsigned key, unsigned subkey, unsigned life,
                      unsigned version) {
    std::string out{first(what),       first(key),        first(subkey), 4, 'a', 'b', 'c', 'd',
                    first(life % 256), first(life / 256), first(version)};
    return what >= 128 ? out + std::string{5, 9, 1} : out; // signed, and then changed
  };
  write("dht_records", "one", put(128, 3, 2, 130, 1));
  write("dht_records", "newer",
        put(128, 3, 2, 130, 1) + put(128, 3, 2, 120, 2) + put(132, 3, 2, 140, 3));
  std::string many;
  for (unsigned i = 0; i < 14; ++i) many += put(1 + 4 * (i % 3), 1 + i % 3, 1 + i % 6, 110 + i, i);
  write("dht_records", "many", many + std::string{2, 100, 1} + many);
  write("dht_records", "dropped", many + first(131) + put(128, 2, 1, 200, 9));
}

// ---- certificates
// ---------------------------------------------------------------------------------------

/// The bytes of the one block of `pem`.
std::string der_of(const std::string& pem) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto from = pem.find('\n') + 1, to = pem.rfind("-----END");
  std::string out;
  std::uint32_t bits = 0;
  int have = 0;
  for (std::size_t at = from; at < to; ++at) {
    const auto digit = digits.find(pem[at]);
    if (digit == std::string_view::npos) continue;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if ((have += 6) >= 8) out += first(bits >> (have -= 8) & 255);
  }
  return out;
}

void certificates() {
  using namespace netem::wire;
  constexpr std::int64_t now = 1'795'294'800'000'000'000;
  const auto swarm = moderator::make("reef", now, 365 * 24h).value();
  const auto key = signing_key::make();
  const auto node = swarm.admit("lab-3", key.public_key(), now, 30 * 24h).value();
  const auto other =
      swarm.admit("lab-4", signing_key::make().public_key(), now, 30 * 24h, true).value();
  const auto empty = revocation_list::read(swarm.first_list(now), swarm.certificate_pem()).value();
  const std::string serials[] = {read_certificate(other).value().serial};
  const auto list = swarm.revoke(empty, serials, now).value();
  const auto request = make_request("lab-3", key);
  std::ofstream("tests/fuzz/swarm_certificates.hpp")
      << fmt::format("// A swarm's certificates, as make_seeds.cpp has written them; both keys are "
                     "lost.\n#pragma once\n\n#include <cstdint>\n\nnamespace shoal::fuzz {{\n\n"
                     "inline constexpr std::int64_t swarm_now = {};\ninline constexpr const char* "
                     "swarm_certificate = R\"({})\";\n"
                     "inline constexpr const char* node_certificate = R\"({})\";\n\n}}  // "
                     "namespace shoal::fuzz\n",
                     now, swarm.certificate_pem(), node);
  write("certificates", "node.pem", first(0) + node);
  write("certificates", "node.der", first(128 + 4) + der_of(node)); // 132 % 6 == 0
  write("certificates", "operator.der", first(132) + der_of(other));
  write("certificates", "swarm.der", first(132) + der_of(swarm.certificate_pem()));
  write("certificates", "request.pem", first(1) + request);
  write("certificates", "request.der", first(133) + der_of(request));
  write("certificates", "list.pem", first(2) + list);
  write("certificates", "list.der", first(128) + der_of(list)); // 128 % 6 == 2
  write("certificates", "list.empty.der", first(128) + der_of(empty.pem()));
  const auto lost = signing_key::make().pem();
  write("certificates", "key.der", first(129) + der_of(std::string(lost.view()))); // 129 % 6 == 3
  write("certificates", "signed.txt",
        first(4) + sign_text("contribution", "host: lab-3\nsamples: 7732\n", key, node));
  write("certificates", "time", first(5) + std::string("2026-11-21T21:00:00Z"));
}

// ---- checkpoints
// -----------------------------------------------------------------------------------------

void checkpoints() {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "shoal_seed.ckpt";
  const auto add = [&](const char* name, const learn::checkpoint& what) {
    if (!save(what, path).ok()) std::abort();
    std::ifstream in(path, std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(in), {}};
    std::uint32_t header = 0;
    std::memcpy(&header, file.data() + 12, 4);
    write("checkpoint", std::string(name) + ".header", first(1) + file.substr(16, header));
    if (file.size() < 4096) write("checkpoint", std::string(name) + ".file", first(200) + file);
  };
  learn::checkpoint c;
  c.workload = "quadratic";
  c.tensors = learn::one_tensor("weights", 12);
  c.optimizer.kind = kernels::optimizer_kind::sgd;
  c.state_id = "00112233445566778899aabbccddeeff";
  c.notes = {{"seed", "1"}};
  c.parameters.assign(12, 1.0F);
  add("quadratic", c);
  c.optimizer.kind = kernels::optimizer_kind::lamb;
  c.power_sgd_rank = 2;
  c.power_sgd_values = 6;
  c.optimizer_state.assign(state_bytes(c.optimizer, 12) + 24, std::byte{0});
  add("low_rank", c);
  learn::checkpoint t;
  const kernels::transformer_config model{.layers = 1, .heads = 1, .dim = 2, .context = 4};
  t.workload = "transformer";
  t.model = learn::description_of(model);
  t.tensors = layout_of(model);
  t.parameters = initial_parameters(model, 1);
  t.optimizer.kind = kernels::optimizer_kind::adamw8;
  t.optimizer_state.assign(state_bytes(t.optimizer, t.parameters.size()), std::byte{0});
  add("transformer", t);
  std::filesystem::remove(path);
}

// ---- codes: which, values, where they begin
// --------------------------------------------------------------

void codes() {
  std::vector<float> x(40);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i) / 7 - 20;
  unsigned which = 0;
  for (const auto codec : kernels::all_codecs) {
    const auto bytes = encode(codec, x).value();
    write("codecs", std::string(to_string(codec)),
          std::string{first(which), 40, 0, 0, 0} + text_of(bytes));
    ++which;
  }
  std::vector<std::byte> top(kernels::top_k_bytes(5));
  if (!kernels::encode_top_k(x, 5, top).ok()) std::abort();
  write("codecs", "top_k", std::string{6, 40, 0, 0, 0} + text_of(top));
  write("codecs", "unsigned8",
        std::string{7, 8, 0, 0, 0} + std::string("\0\0\x80\x3f", 4) + "abcdefgh");
  write("codecs", "tensors", std::string{8, 30, 0, 20, 0} + std::string(64, '\1'));
  write("codecs", "tensors.top_k", std::string{9, 40, 0, 20, 0} + text_of(top));
}

void reports() {
  scenarios::node_report full;
  full.name = "lab-3";
  full.scenario = "home";
  full.version = "0.1.0";
  full.role = "trainer";
  full.phase = "averaging";
  full.epoch = 7;
  full.train_loss = 2.5;
  full.rounds_by_outcome = {{"ok", 6}};
  full.last_rounds = {{6, 3, "ok", "none", 1.5, 2.25}};
  full.neighbours = {{"lab-4", "10.0.0.5:7000", "", {}}, {"home-0", "", "", {}}};
  write("node_report", "trainer.json", to_json(full));
  scenarios::node_report shard;
  shard.role = "shard";
  write("node_report", "shard.json", to_json(shard));
  write("node_report", "missing.json", "{\"name\": 3}");
}

void requests() {
  const auto ask = [](unsigned how, unsigned runs, const std::string& host,
                      const std::string& path) {
    return std::string{first(how), first(runs), first(static_cast<unsigned>(host.size()))} + host +
           path;
  };
  write("http", "page", ask(3, 1, "localhost:8080", "/"));
  write("http", "runs", ask(3, 1, "[::1]:1", "/runs"));
  write("http", "events", ask(3, 11, "127.0.0.1", "/runs/10/events"));
  write("http", "elsewhere", ask(3, 1, "evil.example:80", "/"));
  write("http", "file", ask(0, 1, "", "/runs/../../etc/passwd"));
  write("http", "post", ask(11, 1, "localhost", "/runs/0/events"));
}

/// Writes the receiver, then messages: type, way of sending, fields.
void talk() {
  for (unsigned kind = 0; kind < 15; ++kind) {
    if (kind == 6 || kind == 7) continue; // as 5
    std::string out{first(kind)};
    if (kind == 5) out += first(5);
    for (unsigned type = kind * 8; type < kind * 8 + 12; ++type) {
      out += first(type);
      out += first(type * 37 % 256);
      for (unsigned field = 0; field < 12; ++field) out += first((type * 29 + field * 53) % 256);
    }
    write("strangers", "kind-" + std::to_string(kind), out);
  }
}

// ---- prepared pictures

void prepared_pictures() {
  const auto add = [](const char* name, const std::shared_ptr<const learn::picture_coder>& coder) {
    learn::picture_set set;
    set.coder = coder;
    set.captions = {"red heart", "ear: dark"};
    set.codes = {{0, 1, 2, 1}, {2, 2, 0, 0}};
    set.held_out = {0, 1};
    const auto pipeline = learn::albert_pipeline(learn::text_rules::general, true);
    learn::word_counts words(pipeline);
    for (const auto& caption : set.captions) words.add(caption);
    learn::unigram_training options;
    options.vocabulary = 16;
    if (!set.use_words(std::move(*learn::train_tokenizer(words, pipeline, options)))) return;
    const auto text = learn::text_of(set);
    write("pictures", name, text);
    write("pictures", std::string(name) + ".cut", std::string_view(text).substr(0, 200));
  };
  const auto& kinds = learn::picture_coders();
  const learn::coder_grid grid{2, 2, 3};
  add("kmeans", *kinds.find("kmeans")->read(grid, {}, std::vector<float>(3 * 12, 0.5F)));
  const learn::vq_vae model({grid, 2, 3, 1}, 1);
  add("vq_vae", *kinds.find("vq_vae")->read(grid, {{"width", 2}, {"hidden", 3}, {"blocks", 1}},
                                            model.values()));
}

/// Writes the shape of the group, then a deed for each message of the hostile member.
void lies() {
  for (unsigned shape = 0; shape < 16; ++shape) {
    std::string out{first(shape * 17 % 256)};
    for (unsigned i = 0; i < 60; ++i)
      out += first(i % 3 == 0 ? 4 + (i / 3 + shape) % 11 : (i * 37 + shape * 53) % 256);
    write("liars", "shape-" + std::to_string(shape), out);
  }
}

} // namespace

int main() {
  messages();
  frames();
  records();
  certificates();
  checkpoints();
  codes();
  prepared_pictures();
  reports();
  requests();
  talk();
  lies();
}
