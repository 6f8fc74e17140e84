// Safetensors: any bytes, and any header with as many bytes behind it as the input says.
#include "kernels/learn/formats/safetensors.hpp"

#include "tests/fuzz/targets.hpp"

#include <cstring>
#include <vector>

namespace shoal::fuzz {

void safetensors(bytes input) {
  front from(input);
  std::vector<std::byte> file;
  if (from.byte() < 128) {
    const std::size_t data = from.two_bytes() % 4096;
    const auto header = from.rest();
    const std::uint64_t length = header.size();
    file.resize(8 + header.size() + data);
    std::memcpy(file.data(), &length, 8);
    std::copy(header.begin(), header.end(), file.begin() + 8);
  } else {
    const auto rest = from.rest();
    file.assign(rest.begin(), rest.end());
  }
  const auto size = file.size();
  const auto read = learn::safetensors::from_bytes(std::move(file), "any");
  if (!read)
    return must(read.error().starts_with("safetensors: 'any' "), "an error says which file");
  std::uint64_t end = 0;
  for (const auto& tensor : read->tensors()) {
    must(tensor.begin == end && tensor.end >= end, "tensors lie one behind the other");
    end = tensor.end;
    std::uint64_t elements = 1;
    for (const auto extent : tensor.shape) {
      must(extent >= 0, "a tensor's sides are not negative");
      elements *= static_cast<std::uint64_t>(extent);
    }
    must(tensor.end - tensor.begin == elements * bytes_of(tensor.type), "a tensor fills its shape");
    const auto raw = read->read(tensor);
    must(raw.ok() && raw->size() == tensor.end - tensor.begin, "its bytes are in the file");
    const auto values = read->read_floats(tensor);
    must(!values.ok() || values->size() == tensor.elements(), "each value becomes a float");
    must(read->find(tensor.name) == &tensor, "a tensor is found by its name");
    must(read->take(tensor.name, tensor.shape).ok() == values.ok(), "and by its shape");
  }
  must(end + 8 <= size, "nothing is there that was not in the file");
}

} // namespace shoal::fuzz
