#include "simulate/names.h"

#include <array>

#include <fmt/format.h>

namespace pif::simulate {
namespace {

using Kind = NameOp::Kind;
using State = NamesModel::State;

bool is_file(Meaning meaning) { return meaning > kFolder; }

bool has_parent(const State& state, const NameOp& op, std::size_t path) {
  const auto parent = op.paths->parent(path);
  return !parent || state[*parent] == kFolder;
}

bool is_empty(const State& state, const NameOp& op, std::size_t folder) {
  for (std::size_t i = 0; i < state.size(); ++i)
    if (op.paths->parent(i) == folder && state[i] != kNothing) return false;
  return true;
}

bool publish(State& state, const NameOp& op) {
  if (!has_parent(state, op, op.path) || state[op.path] == kFolder) return false;
  if (op.keep && state[op.path] != kNothing) return false;
  state[op.path] = op.meaning;
  return true;
}

bool make_folder(State& state, const NameOp& op) {
  if (!has_parent(state, op, op.path) || state[op.path] != kNothing) return false;
  state[op.path] = kFolder;
  return true;
}

bool remove(State& state, const NameOp& op) {
  if (state[op.path] == kNothing) return false;
  if (state[op.path] == kFolder && !is_empty(state, op, op.path)) return false;
  state[op.path] = kNothing;
  return true;
}

bool may_replace(const State& state, const NameOp& op) {
  const Meaning from = state[op.path], to = state[op.to];
  if (to == kNothing) return true;
  if (op.keep || (to == kFolder) != (from == kFolder)) return false;
  return is_file(to) || is_empty(state, op, op.to);
}

// Moves what is under a folder too, as far as there are paths for it.
void move_tree(State& state, const NameOp& op) {
  const std::string from = op.paths->text(op.path), to = op.paths->text(op.to);
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (!op.paths->is_inside(i, op.path)) continue;
    if (const auto target = op.paths->find(to + op.paths->text(i).substr(from.size()))) state[*target] = state[i];
    state[i] = kNothing;
  }
  state[op.to] = state[op.path];
  state[op.path] = kNothing;
}

bool rename(State& state, const NameOp& op) {
  if (state[op.path] == kNothing || !has_parent(state, op, op.to)) return false;
  if (op.path == op.to) return true;
  if (!may_replace(state, op)) return false;
  move_tree(state, op);
  return true;
}

bool list(const State& state, const NameOp& op) {
  if (state[op.path] != kFolder) return false;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const bool is_listed = (op.meaning >> i & 1) != 0;
    if (is_listed != (op.paths->parent(i) == op.path && state[i] != kNothing)) return false;
  }
  return true;
}

bool done(State& state, const NameOp& op) {
  switch (op.kind) {
    case Kind::kPublish: return publish(state, op);
    case Kind::kMakeFolder: return make_folder(state, op);
    case Kind::kRemove: return remove(state, op);
    case Kind::kRename: return rename(state, op);
    case Kind::kSee: return state[op.path] == op.meaning;
    case Kind::kList: return list(state, op);
  }
  return false;
}

// Whether an operation can have failed like this: it changed nothing.
bool refused(const State& state, const NameOp& op) {
  const std::size_t target = op.kind == Kind::kRename ? op.to : op.path;
  const bool is_missing = op.kind != Kind::kPublish && op.kind != Kind::kMakeFolder && state[op.path] == kNothing;
  switch (op.code) {
    case Code::kNotFound: return is_missing || !has_parent(state, op, target) || !has_parent(state, op, op.path);
    case Code::kExists: return state[target] != kNothing;
    case Code::kNotEmpty: return state[target] == kFolder && !is_empty(state, op, target);
    default: return true;
  }
}

constexpr std::array<const char*, 6> kKindNames = {"publish", "make folder", "remove", "rename", "see", "list"};

double seconds(Time time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }

}  // namespace

std::size_t Paths::add(const std::string& path) {
  const auto parent = path.substr(0, path.rfind('/'));
  parents_.push_back(parent.empty() ? std::nullopt : find(parent));
  texts_.push_back(path);
  return texts_.size() - 1;
}

std::optional<std::size_t> Paths::find(const std::string& path) const {
  const auto found = std::find(texts_.begin(), texts_.end(), path);
  if (found == texts_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - texts_.begin());
}

bool Paths::is_inside(std::size_t index, std::size_t folder) const {
  for (auto at = parents_[index]; at; at = parents_[*at])
    if (*at == folder) return true;
  return false;
}

std::string NameOp::to_string() const {
  std::string out =
      fmt::format("{:.6f}..{} {}: {} {}", seconds(begin), end == kNever ? "?" : fmt::format("{:.6f}", seconds(end)), by,
                  kKindNames[static_cast<std::size_t>(kind)], paths->text(path));
  if (kind == Kind::kRename) out += " to " + paths->text(to);
  return out + fmt::format(" [{:x}]{} -> {}", meaning, keep ? " keep" : "", code_name(code));
}

bool NamesModel::apply(State& state, const Op& op) {
  if (op.end == kNever) return done(state, op);  // one that did nothing need not be placed
  return op.code == Code::kOk ? done(state, op) : refused(state, op);
}

std::uint64_t NamesModel::hash(const State& state) {
  std::uint64_t out = 1469598103934665603ULL;
  for (const Meaning meaning : state) out = (out ^ meaning ^ (meaning >> 32)) * 1099511628211ULL;
  return out;
}

NamesReport check_names(const Paths& paths, std::vector<NameOp> ops) {
  using enum NameOp::Kind;
  std::erase_if(ops, [](const NameOp& op) { return op.end == kNever && (op.kind == kSee || op.kind == kList); });
  if (ops.empty()) return {};
  const auto all = ops;
  Linearizer<NamesModel> linearizer(std::move(ops));
  NamesReport out{linearizer.check(State(paths.size(), kNothing)), {}};
  if (out.verdict != Verdict::kNot) return out;
  out.text = fmt::format("no order of the names' operations explains them; no attempt gets past\n  {}\nof\n",
                         linearizer.stuck_at().to_string());
  for (const auto& op : all) out.text += "  " + op.to_string() + "\n";
  return out;
}

}  // namespace pif::simulate
