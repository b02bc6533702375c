#include "simulate/teller.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace pif::simulate {

using namespace std::chrono_literals;

bool is_unknown(const Error& error) {
  switch (error.code) {
    case Code::kTimeout:
    case Code::kUnavailable:
    case Code::kCancelled:
    case Code::kStaleServer:
      return true;  // one that has forgotten that it was done, perhaps
    // A request that was executed, and sent again because its answer was lost, may meet a disk that fails now.
    case Code::kIo:
    case Code::kNoSpace: return error.node.empty() || error.node == "server";
    default: return false;
  }
}

Teller::Teller(Shared& shared, sim::Actor& self, std::string name, std::uint64_t seed, bool stale)
    : shared_(shared), self_(self), name_(std::move(name)), dice_(seed), side_(self) {
  options_.route = dice_.chance(50) ? "auto" : "ipc";
  options_.data_path = options_.route == "auto" ? DataPath::kAuto : DataPath::kMessages;
  options_.timeout = shared.plan.timeout;
  options_.program = name_;
  options_.stale = stale;
}

bool Teller::connect() {
  for (int i = 0; i < 20 && self_.pause(200ms); ++i) {
    auto made = Client::connect_in(side_.world(), sim::Cluster::kServer, options_);
    if (!made) continue;
    client_.emplace(std::move(*made));
    return true;
  }
  return false;
}

bool Teller::pause_up_to(Duration longest) {
  return self_.pause(Duration(static_cast<std::int64_t>(1 + dice_.below(static_cast<std::uint64_t>(longest.count())))));
}

bool Teller::failed(const std::string& what, const Error& error) {
  ++shared_.failed;
  last_error_ = error;
  shared_.errors.push_back(fmt::format("{}: {} ({})", what, error.to_string(), code_name(error.code)));
  shared_.tell(fmt::format("{}: {} fails: {} ({})", name_, what, error.to_string(), code_name(error.code)));
  const bool stale =
      error.code == Code::kStaleNode || error.code == Code::kStaleServer || error.code == Code::kStaleData;
  if (stale && !shared_.may_be_stale)
    shared_.oracle.accuse(fmt::format("{}: {}: a false alarm: {}", name_, what, error.to_string()));
  const bool bad = error.code == Code::kInternal || error.code == Code::kCorrupt || error.code == Code::kVersion;
  // What failed before anybody knew its file may have been about any of them.
  const bool may_be_broken =
      subject_ == 0 ? shared_.oracle.may_any_be_broken() : shared_.oracle.may_be_broken(subject_);
  if (bad && !shared_.may_seem_corrupt && !may_be_broken)
    shared_.oracle.accuse(fmt::format("{}: {}: {}", name_, what, error.to_string()));
  return false;
}

NameOp Teller::begin(Kind kind, std::size_t path) {
  ++shared_.operations;
  NameOp op;
  op.paths = &shared_.paths;
  op.kind = kind;
  op.path = path;
  op.begin = now();
  op.by = name_;
  return op;
}

void Teller::end(NameOp op, const Status& status) {
  if (status || !is_unknown(status.error())) op.end = now();
  // What an LFS refused never reached the directory: it says nothing of the names.
  const bool by_server = !status && (status.error().node.empty() || status.error().node == "server");
  if (!status) op.code = by_server ? status.error().code : Code::kInvalid;
  shared_.tell(op.to_string());
  shared_.oracle.note(std::move(op));
}

bool Teller::ended(NameOp op, const Status& status, const std::string& what) {
  end(std::move(op), status);
  return status.has_value() || failed(what, status.error());
}

std::optional<File> Teller::open(std::size_t path, Client::Mode mode) {
  NameOp op = begin(Kind::kSee, path);
  auto file = client().open(text(path), mode);
  subject_ = file ? file->id() : 0;
  if (file) {
    op.meaning = file->id();
    shared_.oracle.saw_file(text(path), file->id());
    end(std::move(op), {});
    return std::move(*file);
  }
  failed("open " + text(path), file.error());
  if (file.error().code == Code::kNotFound) end(std::move(op), {});
  return std::nullopt;
}

std::vector<std::uint32_t> Teller::some_nodes() {
  const std::uint32_t bevy = shared_.plan.bevy;
  const std::uint32_t first = dice_.chance(50) ? bevy : 0;
  std::vector<std::uint32_t> out;
  for (const std::uint32_t begin : {first, bevy - first}) {
    std::vector<std::uint32_t> nodes(bevy);
    std::iota(nodes.begin(), nodes.end(), begin + 1);
    std::rotate(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(dice_.below(bevy)), nodes.end());
    out.insert(out.end(), nodes.begin(), nodes.end());
  }
  return out;
}

bool Teller::rename(std::size_t from, std::size_t to, bool no_replace) {
  NameOp op = begin(Kind::kRename, from);
  op.to = to;
  op.keep = no_replace;
  const auto done = client().rename(text(from), text(to), op.keep);
  return ended(std::move(op), done, "rename " + text(from));
}

bool Teller::remove(std::size_t path) {
  const NameOp op = begin(Kind::kRemove, path);
  const auto done = client().remove(text(path));
  return ended(op, done, "remove " + text(path));
}

}  // namespace pif::simulate
