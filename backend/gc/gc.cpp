#include "backend/gc/gc.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <tuple>

#include "backend/storage/garbage.h"
#include "rpc/base/log.h"
#include "rpc/base/standard_streams.h"

namespace stitchkit {
namespace {

namespace json = boost::json;

constexpr std::int64_t kCentury = std::int64_t{36525} * 24 * 3600;

std::int64_t secondsOf(char unit) {
  switch (unit) {
    case 'd':
      return 24L * 3600;
    case 'h':
      return 3600;
    case 'm':
      return 60;
    case 's':
      return 1;
    default:
      return 0;
  }
}

std::string utc(std::time_t instant) {
  std::array<char, 32> text{};
  std::tm parts{};
  const std::size_t length =
      std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&instant, &parts));
  return {text.data(), length};
}

/// The names on a line are file names of ours or what a host chose: control characters do not reach a terminal.
std::string printable(std::string_view text) {
  std::string shown;
  for (const char one : text) {
    shown += static_cast<unsigned char>(one) < 0x20 || one == 0x7f ? '?' : one;
  }
  return shown;
}

std::string line(const GarbageItem& item) {
  std::string text(nameOf(item.outcome));
  text += ' ' + std::string(nameOf(item.kind)) + ' ' + printable(item.name) + " (" + item.reason;
  text += item.backend.empty() ? "" : ", backend " + printable(item.backend);
  text += item.lastUse ? ", last used " + utc(*item.lastUse) : "";
  return text + ")\n";
}

json::object member(const GarbageItem& item) {
  json::object object{
      {"kind", nameOf(item.kind)}, {"name", item.name}, {"outcome", nameOf(item.outcome)}, {"reason", item.reason}};
  if (!item.backend.empty()) {
    object["backend"] = item.backend;
  }
  if (item.lastUse) {
    object["lastUse"] = utc(*item.lastUse);
  }
  return object;
}

/// What is printed, as it comes or at the end.
class Printer {
 public:
  explicit Printer(const GcPlan& plan) : plan_(plan) {}

  void add(const GarbageItem& item) {
    removed_ += item.outcome == GarbageItem::Outcome::kRemoved ? 1 : 0;
    failed_ += item.outcome == GarbageItem::Outcome::kFailed ? 1 : 0;
    if (!item.failure.empty()) {
      logLine(LogLevel::kError, printable(item.name + ": " + item.failure));
    }
    if (plan_.json) {
      items_.push_back(member(item));
    } else {
      print(line(item));
    }
  }

  void finish() {
    if (plan_.json) {
      json::object document{{"dryRun", plan_.dryRun}, {"removed", removed_}, {"failed", failed_}};
      document["olderThanSeconds"] = plan_.olderThan ? json::value(plan_.olderThan->count()) : json::value();
      document["items"] = std::move(items_);
      print(json::serialize(document) + '\n');
    }
  }

  [[nodiscard]] bool failed() const { return failed_ > 0 || !written_; }

 private:
  // What is left to do is done, whoever hears of it.
  void print(const std::string& text) { written_ = written_ && writeStandardOutput(text); }

  const GcPlan& plan_;
  json::array items_;
  std::int64_t removed_ = 0;
  std::int64_t failed_ = 0;
  bool written_ = true;
};

int refuse(const Error& error) {
  logLine(LogLevel::kError, error.message + (error.privateDetail.empty() ? "" : ": " + error.privateDetail) +
                                (error.hint.empty() ? "" : ". " + error.hint));
  return EXIT_FAILURE;
}

// Then it says so: the name may be a slip.
bool isMissing(const std::string& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) == 0 || errno != ENOENT) {
    return false;
  }
  logLine(LogLevel::kWarning, "there is no " + directory + ", and so nothing to remove");
  return true;
}

}  // namespace

std::optional<std::chrono::seconds> parseAge(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto rest = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::int64_t unit = rest.size() == 1 ? secondsOf(rest.front()) : 0;
  if (error != std::errc() || unit == 0 || number < 0 || number > kCentury / unit) {
    return std::nullopt;
  }
  return std::chrono::seconds(number * unit);
}

int runGc(const GcPlan& plan) {
  std::ignore = std::signal(SIGPIPE, SIG_IGN);
  std::ignore = std::signal(SIGXFSZ, SIG_IGN);  // told as a failure to write
  ::umask(022);
  setLogLevel(LogLevel::kWarning);
  Printer printer(plan);
  if (plan.privilege.stateDirectory && isMissing(*plan.privilege.stateDirectory)) {
    printer.finish();
    return printer.failed() ? EXIT_FAILURE : EXIT_SUCCESS;
  }
  Result<Privilege> privilege = settlePrivilege(plan.privilege);
  if (!privilege) {
    return refuse(privilege.error());
  }
  privilege->steward.dismiss();
  if (isMissing(privilege->stateDirectory)) {
    printer.finish();
    return printer.failed() ? EXIT_FAILURE : EXIT_SUCCESS;
  }
  const GarbageOptions options{privilege->stateDirectory, plan.backendName, plan.olderThan, plan.dryRun};
  const Result<void> collected = collectGarbage(options, [&printer](const GarbageItem& item) { printer.add(item); });
  printer.finish();
  if (!collected) {
    return refuse(collected.error());
  }
  return printer.failed() ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace stitchkit
