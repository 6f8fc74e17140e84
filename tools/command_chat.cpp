// shoal chat MODEL: writes text with a model that servers hold, in the terminal or over HTTP.
#include "scenarios/inference/completions_server.hpp"
#include "scenarios/inference/inference_process.hpp"
#include "scenarios/inference/text_stream.hpp"
#include "scenarios/page/page_file.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/model_argument.hpp"
#include "tools/place_arguments.hpp"
#include "tools/wire_arguments.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace shoal::tools {

namespace {

using namespace std::chrono_literals;

struct chat_arguments {
  model_argument model;
  key_arguments keys;
  std::vector<std::string> join, stops;
  std::string name;
  std::optional<std::string> prompt, http, token_file;
  std::uint64_t servers = 3;
  bool push = false;
  double check = 0;
  std::uint32_t tokens = 200;
  learn::sampling_options sampling{.temperature = 0};
  std::uint64_t seed = 1;
};

/// Prints a text on stdout as it comes, and news on stderr between whole lines.
class chat_screen {
public:
  void text(const std::string& piece) {
    if (piece.empty()) return;
    std::lock_guard guard(mutex_);
    const auto shown = is_terminal_ ? scenarios::for_terminal(piece) : piece;
    if (shown.empty()) return;
    good_ = good_ && std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() &&
            std::fflush(stdout) == 0;
    at_line_begin_ = shown.back() == '\n';
  }
  void news(const std::string& line) {
    std::lock_guard guard(mutex_);
    if (is_terminal_ && !at_line_begin_) text_ends_line();
    fmt::print(stderr, "[{}]\n", line);
  }
  /// Prints a route unless the last one was the same.
  void route(const std::string& line) {
    {
      std::lock_guard guard(mutex_);
      if (std::exchange(last_route_, line) == line) return;
    }
    news(line);
  }
  void end_line() {
    std::lock_guard guard(mutex_);
    if (!at_line_begin_) text_ends_line();
  }
  bool good() {
    std::lock_guard guard(mutex_);
    return good_;
  }

private:
  void text_ends_line() {
    good_ = good_ && std::fputc('\n', stdout) != EOF && std::fflush(stdout) == 0;
    at_line_begin_ = true;
  }
  const bool is_terminal_ = isatty(STDOUT_FILENO) != 0;
  std::mutex mutex_;
  bool at_line_begin_ = true, good_ = true;
  std::string last_route_;
};

/// Lines of stdin. An interrupt ends the wait.
class line_reader {
public:
  /// Empty at the end of the input, or after an interrupt.
  std::optional<std::string> next() {
    while (!interrupted()) {
      if (const auto end = read_.find('\n'); end != std::string::npos) {
        auto out = read_.substr(0, end);
        read_.erase(0, end + 1);
        if (out.ends_with('\r')) out.pop_back();
        return out;
      }
      if (over_) {
        if (read_.empty()) return std::nullopt;
        return std::exchange(read_, {});
      }
      pollfd waits{STDIN_FILENO, POLLIN, 0};
      if (poll(&waits, 1, 100) <= 0) continue;
      std::array<char, 4096> buffer;
      const auto count = read(STDIN_FILENO, buffer.data(), buffer.size());
      if (count > 0) read_.append(buffer.data(), static_cast<std::size_t>(count));
      over_ = count == 0 || read_.size() > most_;
    }
    return std::nullopt;
  }

private:
  static constexpr std::size_t most_ = 1 << 20; // more than any context
  std::string read_;
  bool over_ = false;
};

/// Writes texts one after the other.
class writer {
public:
  writer(scenarios::inference_process& by, const learn::served_model& model,
         const chat_arguments& arguments, chat_screen& screen)
      : by_(by), model_(model), arguments_(arguments), screen_(screen) {}

  /// Writes a text after `prompt`. Empty: goes on with the last text. Returns an exit status.
  int write(const std::string& prompt) {
    const auto context = static_cast<std::size_t>(model_.model->context());
    if (!prompt.empty()) tokens_ = model_.encode(prompt);
    if (tokens_.size() >= context) {
      if (!prompt.empty())
        return fail(fmt::format("the prompt has {} tokens, and the model's context has room for {}",
                                tokens_.size(), context - 1));
      // The model sees the end of a long text.
      tokens_.erase(tokens_.begin(), tokens_.end() - static_cast<std::ptrdiff_t>(context / 2));
    }
    scenarios::writing what;
    what.prompt = tokens_;
    what.tokens = static_cast<std::uint32_t>(
        std::min<std::size_t>(arguments_.tokens, context - tokens_.size()));
    what.sampling = arguments_.sampling;
    what.seed = arguments_.seed;
    scenarios::text_stream text(*model_.codec, tokens_, arguments_.stops);
    state now;
    what.on_token = [&](learn::token_id token) {
      if (now.tokens.empty() && !prompt.empty()) screen_.text(shown_prompt(prompt));
      now.tokens.push_back(token);
      screen_.text(text.push(token));
      if (text.stopped()) now.finish({});
    };
    what.on_end = [&](const std::string& why) { now.finish(why); };
    const auto number = by_.write(std::move(what));
    std::optional<std::string> broken;
    {
      std::unique_lock lock(now.guard);
      while (!now.over && !interrupted() && !(broken = by_.broken()) && screen_.good())
        now.changed.wait_for(lock, 50ms);
    }
    by_.cancel(number);
    // After an interrupt the rest may be half a character, whose other bytes never come.
    if (!interrupted()) screen_.text(text.end());
    screen_.end_line();
    tokens_.insert(tokens_.end(), now.tokens.begin(), now.tokens.end());
    if (broken) return fail(*broken, exit_run_failed);
    if (!now.why.empty()) return fail(now.why, exit_run_failed);
    if (!screen_.good()) return fail("cannot write the text");
    return interrupted() ? exit_interrupted : exit_ok;
  }

private:
  struct state {
    std::mutex guard;
    std::condition_variable changed;
    std::vector<learn::token_id> tokens;
    std::string why;
    bool over = false;
    void finish(const std::string& because) {
      std::lock_guard lock(guard);
      why = because;
      over = true;
      changed.notify_all();
    }
  };
  std::string shown_prompt(const std::string& prompt) const {
    return scenarios::as_utf8(model_.begin ? model_.codec->decode(tokens_) : prompt);
  }

  scenarios::inference_process& by_;
  const learn::served_model& model_;
  const chat_arguments& arguments_;
  chat_screen& screen_;
  std::vector<learn::token_id> tokens_;
};

/// Splits all layers into `count` parts of nearly the same size.
std::vector<actors::layer_span> split_layers(std::uint32_t layers, std::uint64_t count) {
  std::vector<actors::layer_span> out;
  const auto parts = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, layers));
  for (std::uint32_t i = 0; i < parts; ++i)
    out.push_back({layers * i / parts, layers * (i + 1) / parts});
  return out;
}

/// Passes news on to the HTTP server, if there is one.
class heralds {
public:
  void set(scenarios::completions_server* to) {
    std::lock_guard guard(mutex_);
    to_ = to;
  }
  void tell(const scenarios::inference_news& what) {
    std::lock_guard guard(mutex_);
    if (to_ != nullptr) to_->tell(what);
  }

private:
  std::mutex mutex_;
  scenarios::completions_server* to_ = nullptr;
};

/// Reads the keys and the addresses. Returns exit_ok, or another status after printing the error.
int place_of(const chat_arguments& arguments, scenarios::inference_process_options& into) {
  if (arguments.join.empty()) {
    if (!arguments.keys.folder.empty() || arguments.keys.insecure)
      return fail("--keys and --insecure are for a swarm of other hosts: name one of its hosts "
                  "with --join HOST:PORT",
                  exit_usage);
    return exit_ok;
  }
  auto join = parse_join(arguments.join);
  if (!join) return exit_usage;
  scenarios::inference_place here;
  here.join = std::move(*join);
  if (const int code = arguments.keys.load(here.keys); code != exit_ok) return code;
  here.name = !arguments.name.empty() ? arguments.name
              : here.keys             ? here.keys->name
                                      : process_name("chat");
  if (here.keys && here.keys->name != here.name)
    return fail(fmt::format("the keys in '{}' are those of '{}', not of '{}'",
                            arguments.keys.folder, here.keys->name, here.name));
  into.place = std::move(here);
  return exit_ok;
}

/// Serves texts over HTTP until Ctrl-C. `news` becomes the function that takes news.
int serve_http(const chat_arguments& arguments, scenarios::inference_process& by,
               const std::shared_ptr<const learn::served_model>& model, chat_screen& screen,
               heralds& news) {
  scenarios::completions_options options;
  const auto& at = *arguments.http;
  options.address = at.find(':') == std::string::npos ? ":" + at : at;
  options.model = model;
  if (arguments.token_file) {
    auto token = scenarios::read_access_token(*arguments.token_file);
    if (!token) return fail(fmt::format("--token-file: {}", token.error()));
    options.token = *token;
  }
  auto page = scenarios::load_chat_page();
  if (!page) return fail(page.error());
  options.page = std::move(*page);
  options.write = [&by](scenarios::writing what) { return by.write(std::move(what)); };
  options.cancel = [&by](std::uint64_t which) { by.cancel(which); };
  auto server = scenarios::completions_server::listen(std::move(options));
  if (!server) return fail(fmt::format("--http: {}", server.error()), exit_usage);
  news.set(server->get());
  screen.news(fmt::format("{0} has a chat box, and {0}v1 is for clients", (*server)->url()));
  while (!interrupted() && !by.broken()) std::this_thread::sleep_for(50ms);
  news.set(nullptr);
  server->reset();
  if (const auto why = by.broken()) return fail(*why, exit_run_failed);
  return exit_ok;
}

int chat(const chat_arguments& arguments) {
  if (arguments.http && arguments.prompt)
    return fail("--http and --prompt: serve texts over HTTP, or write one text", exit_usage);
  if (arguments.token_file && !arguments.http)
    return fail("--token-file is for --http", exit_usage);
  if (arguments.check > 0 && arguments.join.empty())
    return fail("--check is for the servers of others: name a host of their swarm with --join "
                "HOST:PORT",
                exit_usage);
  if (auto valid = learn::validate(arguments.sampling); !valid)
    return fail(valid.error(), exit_usage);
  if (std::any_of(arguments.stops.begin(), arguments.stops.end(),
                  [](const auto& each) { return each.empty(); }))
    return fail("--stop: the text is empty", exit_usage);
  scenarios::inference_process_options options;
  if (const int code = place_of(arguments, options); code != exit_ok) return code;
  options.model = arguments.model.load();
  if (!options.model) return exit_bad_input;
  const auto model = options.model;
  options.weights = arguments.model.format();
  options.push = arguments.push;
  options.check = arguments.check;
  if (!options.place)
    options.servers =
        split_layers(static_cast<std::uint32_t>(model->model->layers()), arguments.servers);
  chat_screen screen;
  options.say = [&](const std::string& line) { screen.news(line); };
  heralds http;
  options.on_news = [&](const scenarios::inference_news& news) {
    http.tell(news);
    if (news.what == scenarios::inference_news::kind::route)
      screen.route(news.text);
    else
      screen.news(news.text);
  };
  catch_interrupts();
  auto process = scenarios::inference_process::start(std::move(options));
  if (!process) return fail(process.error());
  if (arguments.http) return serve_http(arguments, **process, model, screen, http);
  writer writes(**process, *model, arguments, screen);
  if (arguments.prompt) {
    if (arguments.prompt->empty()) return fail("--prompt: give at least one word", exit_usage);
    return writes.write(*arguments.prompt);
  }
  const bool people = isatty(STDIN_FILENO) != 0;
  if (people)
    fmt::print(stderr,
               "{}: {} layers, a context of {} tokens. A line begins a text, an empty line goes on "
               "with it, and Ctrl-D ends.\n",
               model->name, model->model->layers(), model->model->context());
  line_reader lines;
  bool any = false;
  for (;;) {
    if (people) fmt::print(stderr, "> ");
    const auto line = lines.next();
    if (!line) break;
    if (line->empty() && !any) continue;
    any = true;
    const int code = writes.write(*line);
    // A prompt that is too long does not end a conversation.
    if (code != exit_ok && !(people && code == exit_bad_input)) return code;
  }
  if (people) fmt::print(stderr, "\n");
  return interrupted() ? exit_interrupted : exit_ok;
}

} // namespace

void add_chat(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<chat_arguments>();
  auto* command = app.add_subcommand(
      "chat", "write with a language model that a swarm serves, or servers in this process");
  arguments->model.add_to(*command);
  add_join(*command, arguments->join);
  arguments->keys.add_to(*command);
  command
      ->add_option("--name", arguments->name,
                   "name of this host in the swarm (default: its keys' name, or one from the "
                   "host's)")
      ->type_name("NAME");
  command
      ->add_option("--servers", arguments->servers,
                   "without --join: the servers in this process, which share the layers")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1ul, 4096ul));
  command->add_flag("--push", arguments->push,
                    "each server sends its output to the next one, too, which saves half of the "
                    "round trips");
  command
      ->add_option("--check", arguments->check,
                   "with --join: after this share of the tokens other servers compute the text "
                   "again, and a server that computes wrongly gets no more work. Words appear when "
                   "they are checked")
      ->type_name("SHARE")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--prompt", arguments->prompt,
                   "write one text after this, and end (default: read lines from stdin)")
      ->type_name("TEXT");
  command
      ->add_option("--http", arguments->http,
                   "serve texts over HTTP in the completions and chat protocol, and a page with a "
                   "chat box (a port alone: at 127.0.0.1)")
      ->type_name("[HOST:]PORT");
  command
      ->add_option("--token-file", arguments->token_file,
                   "with --http: clients give the token in this file (Authorization: Bearer). "
                   "An address that other machines reach needs it")
      ->type_name("FILE");
  command->add_option("--tokens", arguments->tokens, "the most tokens of a text")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 24));
  command
      ->add_option("--temperature", arguments->sampling.temperature,
                   "0 always takes the likeliest token")
      ->type_name("T")
      ->capture_default_str();
  command
      ->add_option("--top-k", arguments->sampling.top_k,
                   "draw among the K likeliest tokens; 0: all")
      ->type_name("K")
      ->capture_default_str();
  command
      ->add_option("--top-p", arguments->sampling.top_p,
                   "draw among the likeliest tokens with this total probability")
      ->type_name("P")
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "the same seed writes the same text")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--stop", arguments->stops, "this text ends what is written; repeatable")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->callback([arguments, &chosen] { chosen = [arguments] { return chat(*arguments); }; });
}

} // namespace shoal::tools
