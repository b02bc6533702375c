// Runs a fuzz target over files, without libFuzzer:
//
//   fuzz_TARGET_replay FILE|FOLDER...    runs each file, and each file of each folder
//   fuzz_TARGET_replay --seeds FOLDER    writes the target's seeds there
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

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

}  // namespace

int main(int argc, char** argv) {
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
