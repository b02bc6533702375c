// What the fuzz targets have in common. Each target is one file that defines LLVMFuzzerTestOneInput and seeds(). It is
// built twice: with libFuzzer (preset `fuzz`), and with replay.cc, which runs the kept corpus and writes the seeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace pif::fuzz {

// Inputs to begin with, by name: well-formed ones, which random bytes would hardly become.
std::vector<std::pair<std::string, std::string>> seeds();

// Takes values off the front of an input; zeros when it has ended.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}
  bool empty() const { return rest_.empty(); }
  std::size_t size() const { return rest_.size(); }

  std::uint8_t byte() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t word() { return static_cast<std::uint16_t>(number(2)); }
  std::uint64_t wide() { return number(8); }
  std::string_view bytes(std::size_t count) {
    const auto out = rest_.substr(0, count);
    rest_.remove_prefix(out.size());
    return out;
  }
  // A length of two bytes, then that many bytes.
  std::string_view text() { return bytes(word()); }
  std::string_view rest() { return bytes(rest_.size()); }

 private:
  std::uint64_t number(unsigned count) {
    std::uint64_t value = 0;
    const auto taken = bytes(count);
    for (std::size_t i = 0; i < taken.size(); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }
  std::string_view rest_;
};

// The other way round: what seeds are made of.
class Output {
 public:
  Output& byte(unsigned value) { return number(value, 1); }
  Output& word(unsigned value) { return number(value, 2); }
  Output& wide(std::uint64_t value) { return number(value, 8); }
  Output& bytes(std::string_view value) {
    out_ += value;
    return *this;
  }
  Output& text(std::string_view value) { return word(static_cast<unsigned>(value.size())).bytes(value); }
  const std::string& str() const { return out_; }

 private:
  Output& number(std::uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) out_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string out_;
};

// What must hold whatever the input is. Nobody catches what it throws: the fuzzer keeps the input.
inline void must(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

}  // namespace pif::fuzz
