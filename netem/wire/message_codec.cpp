#include "netem/wire/message_codec.hpp"

#include "kernels/base/check.hpp"
#include "netem/fabric.hpp"

#include <caf/deserializer.hpp>
#include <caf/detail/dynamic_message_data.hpp>
#include <caf/detail/network_order.hpp>
#include <caf/make_counted.hpp>
#include <caf/proxy_registry.hpp>
#include <caf/scoped_execution_unit.hpp>
#include <caf/sec.hpp>
#include <caf/stream_serializer.hpp>
#include <caf/streambuf.hpp>

#include <cstring>

namespace shoal::netem::wire {

namespace {

class outgoing final : public caf::stream_serializer<caf::vectorbuf>, public payload_sink {
public:
  outgoing(caf::execution_unit* context, encoded_message& into)
      : caf::stream_serializer<caf::vectorbuf>(context, into.binary), into_(into) {}
  void take(const payload& what) override { into_.beside.push_back(what); }

private:
  encoded_message& into_;
};

// A deserializer with limits. CAF's binary deserializer is final, and CAF's other ones allocate
// strings before their bytes arrive.
class incoming final : public caf::deserializer, public payload_source {
public:
  incoming(caf::execution_unit* context, std::span<const std::byte> bytes, const payload& beside)
      : caf::deserializer(context), left_(bytes), beside_(beside) {}

  bool finished() const noexcept { return left_.empty() && given_ == beside_.size(); }

  bool give(std::size_t size, bool size_only, payload& into) override {
    if (beside_.size() - given_ < size) return false;
    into = size_only ? payload::size_only(size) : beside_.slice(given_, size);
    given_ += size;
    return true;
  }

  caf::error begin_object(std::uint16_t& number, std::string& name) override {
    if (auto err = apply_impl(number)) return err;
    return number == 0 ? apply_impl(name) : caf::error{};
  }
  caf::error end_object() override { return caf::none; }
  caf::error begin_sequence(std::size_t& size) override {
    std::uint32_t out = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      std::uint8_t next = 0;
      if (auto err = apply_impl(next)) return err;
      out |= static_cast<std::uint32_t>(next & 0x7f) << shift;
      if ((next & 0x80) == 0) {
        // Each element takes at least one byte, so a larger count cannot be true.
        if (out > left_.size()) return caf::sec::end_of_stream;
        size = out;
        return caf::none;
      }
    }
    return caf::sec::invalid_argument;
  }
  caf::error end_sequence() override { return caf::none; }
  caf::error apply_raw(std::size_t size, void* data) override {
    if (size > left_.size()) return caf::sec::end_of_stream;
    if (size > 0) std::memcpy(data, left_.data(), size);
    left_ = left_.subspan(size);
    return caf::none;
  }

protected:
  caf::error apply_impl(std::int8_t& x) override { return apply_raw(1, &x); }
  caf::error apply_impl(std::uint8_t& x) override { return apply_raw(1, &x); }
  caf::error apply_impl(std::int16_t& x) override { return number(x); }
  caf::error apply_impl(std::uint16_t& x) override { return number(x); }
  caf::error apply_impl(std::int32_t& x) override { return number(x); }
  caf::error apply_impl(std::uint32_t& x) override { return number(x); }
  caf::error apply_impl(std::int64_t& x) override { return number(x); }
  caf::error apply_impl(std::uint64_t& x) override { return number(x); }
  // No message between hosts contains a floating-point number outside a payload.
  caf::error apply_impl(float&) override { return caf::sec::invalid_argument; }
  caf::error apply_impl(double&) override { return caf::sec::invalid_argument; }
  caf::error apply_impl(long double&) override { return caf::sec::invalid_argument; }
  caf::error apply_impl(std::u16string&) override { return caf::sec::invalid_argument; }
  caf::error apply_impl(std::u32string&) override { return caf::sec::invalid_argument; }
  caf::error apply_impl(std::string& x) override {
    std::size_t size = 0;
    if (auto err = begin_sequence(size)) return err;
    x.resize(size);
    return apply_raw(size, x.data());
  }

private:
  template <class T>
  caf::error number(T& x) {
    std::make_unsigned_t<T> raw = 0;
    if (auto err = apply_raw(sizeof(raw), &raw)) return err;
    x = static_cast<T>(caf::detail::from_network_order(raw));
    return caf::none;
  }

  std::span<const std::byte> left_;
  const payload& beside_;
  std::size_t given_ = 0;
};

// Maps the addresses in a message to addresses of the fabric.
class addresses final : public caf::proxy_registry::backend {
public:
  addresses(fabric& net, std::size_t* unheard) : net_(net), unheard_(unheard) {}
  caf::strong_actor_ptr make_proxy(caf::node_id node, caf::actor_id number) override {
    const bool known = unheard_ == nullptr || net_.knows(node);
    auto out = net_.address_at(node, number);
    if (!known && out) ++*unheard_;
    return out;
  }
  void set_last_hop(caf::node_id*) override {}

private:
  fabric& net_;
  std::size_t* unheard_;
};

} // namespace

encoded_message encode(caf::actor_system& system, const caf::type_erased_tuple& content) {
  SHOAL_CHECK(content.size() == 1, "messages between hosts have one element");
  encoded_message out;
  caf::scoped_execution_unit context{&system};
  outgoing sink{&context, out};
  auto failed = [&]() -> caf::error {
    auto name = system.types().portable_name(content.type(0));
    if (auto err = sink(name)) return err;
    return content.save(0, sink);
  }();
  if (failed)
    check_failed(__FILE__, __LINE__, "every message can be serialized",
                 content.stringify(0).c_str());
  return out;
}

result<caf::message> decode(caf::actor_system& system, fabric& net,
                            std::span<const std::byte> binary, const payload& beside,
                            const std::function<bool(std::string_view)>& acceptable,
                            std::size_t* unheard) {
  addresses known{net, unheard};
  caf::proxy_registry registry{system, known};
  caf::scoped_execution_unit context{&system};
  context.proxy_registry_ptr(&registry);
  incoming source{&context, binary, beside};
  std::string name;
  if (source(name)) return failure{"not a message"};
  if (!acceptable(name)) return failure{"a message of a type that hosts do not send each other"};
  auto value = system.types().make_value(name);
  if (!value) return failure{"a message of a type that hosts do not send each other"};
  if (value->load(source)) return failure{"a message that ends early"};
  if (!source.finished()) return failure{"a message with more bytes than it has"};
  std::vector<caf::type_erased_value_ptr> elements;
  elements.push_back(std::move(value));
  return caf::message{caf::message::data_ptr{
      caf::make_counted<caf::detail::dynamic_message_data>(std::move(elements))}};
}

} // namespace shoal::netem::wire
