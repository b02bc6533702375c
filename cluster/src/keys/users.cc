#include "pif/cluster/users.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "files/files.h"
#include "keys/keys.h"

namespace pif::cluster {
namespace {

constexpr int kGroupsMax = 1024;
constexpr std::size_t kPasswdBytes = 1u << 16;
constexpr mode_t kUserKeyMode = 0400;

Status check_user_name(const std::string& name) {
  if (is_user_name(name)) return {};
  return fail(Code::kInvalid,
              fmt::format("a user's name must be 1 to {} of letters, digits and - _ . @, and begin with "
                          "none of - and .",
                          kUserNameMax));
}

}  // namespace

bool is_user_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.@").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kUserNameMax && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), is_allowed);
}

Result<User> look_up_user(const std::string& name) {
  PIF_TRY(check_user_name(name));
  passwd entry{};
  passwd* found = nullptr;
  std::string buffer(kPasswdBytes, '\0');
  if (const int error = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found); error != 0)
    return fail_errno(error, "cannot look up the user " + name);
  if (found == nullptr)
    return fail(Code::kNotFound, fmt::format("this machine has no user {}: say his number with --uid", name));
  User user = {name, entry.pw_uid, {}};
  int count = kGroupsMax;
  user.groups.resize(kGroupsMax);
  if (::getgrouplist(name.c_str(), entry.pw_gid, user.groups.data(), &count) < 0) count = kGroupsMax;
  user.groups.resize(static_cast<std::size_t>(count));
  return user;
}

Result<net::CurveKeys> add_user(const Cluster& cluster, const User& user) {
  PIF_TRY(check_user_name(user.name));
  if (user.groups.empty()) return fail(Code::kInvalid, fmt::format("the user {} needs a group", user.name));
  PIF_TRY_VALUE(net::CurveKeys pair, net::make_curve_keys());
  const std::string line = fmt::format("{} {} {}\n", pair.public_key, user.uid, fmt::join(user.groups, ","));
  PIF_TRY(write_file(fmt::format("{}/{}.pub", client_key_folder(cluster.folder), user.name), line, kUserKeyMode,
                     Existing::kReplace));
  return pair;
}

}  // namespace pif::cluster
