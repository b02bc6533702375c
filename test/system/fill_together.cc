// fill-together FOLDER PATH BYTES PROCESSES SEED [VICTIM]: processes fill one file of so many bytes in random pieces,
// by descriptor and by message. It is committed, and read and compared. With a victim that process is killed in the
// middle: the file must not be there afterwards, or be whole.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pif/client/client.h"
#include "pif/pattern/builders.h"

extern char** environ;

namespace {

constexpr std::size_t kPieceMax = 1u << 20;
constexpr std::uint32_t kRecordBytes = 4096;

struct Task {
  const char* folder;
  std::string path;
  std::uint64_t bytes;
  unsigned processes;
  std::uint64_t seed;
  int victim;
};

std::byte byte_at(std::uint64_t seed, std::uint64_t at) {
  std::uint64_t x = (at / 8 + 1) * 0x9e3779b97f4a7c15u ^ seed * 0xbf58476d1ce4e5b9u;
  x ^= x >> 29;
  x *= 0x94d049bb133111ebu;
  return static_cast<std::byte>(x >> (at % 8 * 8));
}
std::vector<std::byte> content(const Task& task, std::uint64_t at, std::size_t size) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = byte_at(task.seed, at + i);
  return out;
}

pif::Result<pif::Client> connect(const Task& task, bool by_message) {
  pif::ConnectOptions options;
  options.where = task.folder;
  options.data_path = by_message ? pif::DataPath::kMessages : pif::DataPath::kAuto;
  return pif::Client::connect(options);
}

// All pieces of the file; every process has every so manieth, in an order of its own.
std::vector<std::pair<std::uint64_t, std::size_t>> own_pieces(const Task& task, unsigned index) {
  std::mt19937_64 random(task.seed);
  std::vector<std::pair<std::uint64_t, std::size_t>> own;
  unsigned turn = 0;
  for (std::uint64_t at = 0; at < task.bytes; ++turn) {
    std::size_t size = 1 + (random() % 2 == 0 ? random() % 200 : random() % kPieceMax);
    size = std::min<std::uint64_t>(size, task.bytes - at);
    if (turn % task.processes == index) own.emplace_back(at, size);
    at += size;
  }
  std::shuffle(own.begin(), own.end(), std::mt19937_64(task.seed + index));
  return own;
}

// Short pieces go many at once.
pif::Status write_short(pif::File& file, const Task& task, std::vector<std::pair<std::uint64_t, std::size_t>>& pieces) {
  std::vector<pif::patterns::Piece> list;
  std::vector<std::byte> memory;
  for (const auto& [at, size] : pieces) {
    list.push_back({static_cast<std::int64_t>(at), size});
    const auto bytes = content(task, at, size);
    memory.insert(memory.end(), bytes.begin(), bytes.end());
  }
  pieces.clear();
  if (list.empty()) return {};
  return file.write_pieces({pif::patterns::list(list), pif::patterns::range(0, memory.size()), 0, 0, {}}, memory);
}

pif::Status fill(const Task& task, unsigned index, const std::string& token) {
  PIF_TRY_VALUE(pif::Client client, connect(task, index % 2 == 1));
  PIF_TRY_VALUE(pif::File file, client.join(token));
  std::vector<std::pair<std::uint64_t, std::size_t>> pieces;
  for (const auto& [at, size] : own_pieces(task, index)) {
    if (size <= 200) {
      pieces.emplace_back(at, size);
    } else {
      PIF_TRY(file.pwrite(content(task, at, size), at));
    }
    if (pieces.size() >= 20) PIF_TRY(write_short(file, task, pieces));
  }
  PIF_TRY(write_short(file, task, pieces));
  return file.done();
}

std::string hex_of(const std::string& bytes) {
  const char* const digits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}
std::string bytes_of(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

pif::Status compare(pif::Client& client, const Task& task) {
  PIF_TRY_VALUE(pif::File file, client.open(task.path));
  PIF_TRY_VALUE(const pif::FileLength length, file.file_length());
  if (length.bytes != task.bytes) return pif::fail(pif::Code::kCorrupt, "another length");
  std::vector<std::byte> some(kPieceMax);
  for (std::uint64_t at = 0; at < task.bytes; at += some.size()) {
    PIF_TRY_VALUE(const std::size_t n, file.pread(some, at));
    for (std::size_t i = 0; i < n; ++i)
      if (some[i] != byte_at(task.seed, at + i))
        return pif::fail(pif::Code::kCorrupt, "byte " + std::to_string(at + i) + " is another");
  }
  return {};
}

pif::Result<std::vector<pid_t>> start_all(const Task& task, const std::string& token, char** argv) {
  static_cast<void>(::setenv("FILL_TOKEN", hex_of(token).c_str(), 1));
  std::vector<pid_t> started(task.processes);
  for (unsigned i = 0; i < task.processes; ++i) {
    static_cast<void>(::setenv("FILL_INDEX", std::to_string(i).c_str(), 1));
    if (::posix_spawn(&started[i], "/proc/self/exe", nullptr, nullptr, argv, environ) != 0)
      return pif::fail(pif::Code::kInternal, "a process could not be started");
  }
  return started;
}

// Questions to the server until the victim is killed: some part of the time that the others take for the file.
std::uint64_t patience(const Task& task) {
  constexpr std::uint64_t kBytes = 32u << 20;
  return task.seed * 37 % 1000 * std::max<std::uint64_t>(1, task.bytes / kBytes);
}

pif::Status control(const Task& task, char** argv) {
  PIF_TRY_VALUE(pif::Client client, connect(task, false));
  pif::CreateOptions options;
  options.format = pif::Format::fixed(kRecordBytes);
  PIF_TRY_VALUE(pif::File file, client.create(task.path, options));
  PIF_TRY_VALUE(const std::string token, file.share());
  PIF_TRY_VALUE(const std::vector<pid_t> started, start_all(task, token, argv));
  if (task.victim >= 0) {
    // Who is killed before it joins is nobody's member, and the file is committed without it.
    for (std::size_t joined = 0; joined <= task.processes;) {
      PIF_TRY_VALUE(const auto members, file.members());
      joined = members.size();
    }
    for (std::uint64_t i = patience(task); i > 0; --i) PIF_TRY(file.members());
    static_cast<void>(::kill(started[static_cast<std::size_t>(task.victim)], SIGKILL));
  }
  bool all_done = true;
  for (const pid_t pid : started) {
    int status = 0;
    static_cast<void>(::waitpid(pid, &status, 0));
    all_done = all_done && status == 0;
  }
  if (!all_done && task.victim < 0) return pif::fail(pif::Code::kCancelled, "a process failed");
  const pif::Status committed = file.commit();
  if (all_done) {
    PIF_TRY(committed);
    return compare(client, task);
  }
  if (committed) return compare(client, task);  // it was killed when it had said that it was done
  if (committed.error().text.find("member ") == std::string::npos) return committed;
  PIF_TRY(file.abort());
  const auto found = client.open(task.path);
  return found ? compare(client, task) : pif::Status();  // of an earlier round, perhaps
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const Task task{argv[1],
                  argv[2],
                  std::stoull(argv[3]),
                  static_cast<unsigned>(std::atoi(argv[4])),
                  std::stoull(argv[5]),
                  argc > 6 ? std::atoi(argv[6]) : -1};
  const char* const token = std::getenv("FILL_TOKEN");
  pif::Status done;
  if (token == nullptr)
    done = control(task, argv);
  else
    done = fill(task, static_cast<unsigned>(std::atoi(std::getenv("FILL_INDEX"))), bytes_of(token));
  if (done) return 0;
  std::cerr << "fill-together: " << done.error().to_string() << "\n";
  return 3;
}
