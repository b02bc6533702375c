// Runs a fuzz target over files, without libFuzzer:
//
//   fuzz_TARGET_replay FILE|FOLDER...    runs each file, and each file of each folder
//   fuzz_TARGET_replay --seeds FOLDER    writes the target's seeds there
//   fuzz_TARGET_replay --mutate COUNT SEED FOLDER
//       runs COUNT inputs that are made of the folder's, changed and joined at random: blind, but needs no clang. One
//       that fails is left in the file failed-input.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>

#include "fuzz.h"

namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void run(const fs::path& path) {
  const std::string bytes = content(path);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

int write_seeds(const fs::path& folder) {
  fs::create_directories(folder);
  for (const auto& [name, bytes] : pif::fuzz::seeds()) {
    std::ofstream out(folder / name, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) return 3;
  }
  return 0;
}

// ---- mutation ----

std::string current;  // what runs: written by whatever ends the process

extern "C" void save_current(int signal) {
  const int fd = ::open("failed-input", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  const bool saved = ::write(fd, current.data(), current.size()) == static_cast<ssize_t>(current.size());
  ::signal(signal, SIG_DFL);
  ::raise(saved ? signal : SIGKILL);
}

class Mutator {
 public:
  Mutator(const fs::path& folder, std::uint64_t seed) : random_(seed) {
    for (const auto& entry : fs::directory_iterator(folder)) inputs_.push_back(content(entry.path()));
  }
  bool empty() const { return inputs_.empty(); }
  std::string next() {
    std::string out = inputs_[pick(inputs_.size())];
    if (pick(2) == 0) out += inputs_[pick(inputs_.size())];
    for (std::size_t changes = pick(8); changes > 0; --changes) change(out);
    return out;
  }

 private:
  std::size_t pick(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }
  void change(std::string& out) {
    if (out.empty()) return;
    const std::size_t at = pick(out.size());
    static constexpr std::array<char, 6> kEdges = {0, 1, 0x7f, static_cast<char>(0x80), static_cast<char>(0xff), 0x10};
    switch (pick(6)) {
      case 0: out[at] = static_cast<char>(random_()); break;
      case 1: out[at] = kEdges[pick(kEdges.size())]; break;
      case 2: out[at] = static_cast<char>(out[at] ^ (1 << pick(8))); break;
      case 3: out.erase(at, pick(8)); break;
      case 4: out.insert(at, out.substr(pick(out.size()), pick(64))); break;
      default: {
        const std::string& other = inputs_[pick(inputs_.size())];
        if (!other.empty()) out.replace(at, pick(64), other.substr(pick(other.size()), pick(200)));
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> inputs_;
};

int mutate(std::uint64_t count, std::uint64_t seed, const fs::path& folder) {
  Mutator mutator(folder, seed);
  if (mutator.empty()) return 1;
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) ::signal(signal, save_current);
  for (std::uint64_t i = 0; i < count; ++i) {
    current = mutator.next();
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
  }
  std::cout << count << " inputs run\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], "--mutate") == 0)
    return mutate(std::stoull(argv[2]), std::stoull(argv[3]), argv[4]);
  if (argc == 3 && std::strcmp(argv[1], "--seeds") == 0) return write_seeds(argv[2]);
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      run(argv[i]);
      ++count;
      continue;
    }
    for (const auto& entry : fs::directory_iterator(argv[i])) {
      run(entry.path());
      ++count;
    }
  }
  for (const auto& [name, bytes] : pif::fuzz::seeds())  // they must run, too
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  std::cout << count << " inputs run\n";
  return count > 0 ? 0 : 1;
}
