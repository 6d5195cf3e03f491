// Stand-in for ros2_control's hardware_interface and rclcpp: the declarations that the example plugin uses.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

namespace rclcpp {
class Time {};
class Duration {
 public:
  explicit Duration(double seconds) : seconds_(seconds) {}
  double seconds() const { return seconds_; }

 private:
  double seconds_;
};
}  // namespace rclcpp

namespace hardware_interface {
enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type { OK, ERROR };

struct InterfaceInfo {
  std::string name;
};
struct ComponentInfo {
  std::string name;
  std::vector<InterfaceInfo> command_interfaces, state_interfaces;
};
struct HardwareInfo {
  std::unordered_map<std::string, std::string> hardware_parameters;
  std::vector<ComponentInfo> joints;
};

class Handle {
 public:
  Handle(const std::string &prefix, const std::string &name, double *value)
      : name_(prefix + "/" + name), value_(value) {}
  const std::string &get_name() const { return name_; }
  double get_value() const { return *value_; }
  void set_value(double value) { *value_ = value; }

 private:
  std::string name_;
  double *value_;
};
using StateInterface = Handle;
using CommandInterface = Handle;

class SystemInterface {
 public:
  virtual ~SystemInterface() = default;
  virtual CallbackReturn on_init(const HardwareInfo &info) {
    info_ = info;
    return CallbackReturn::SUCCESS;
  }
  virtual std::vector<StateInterface> export_state_interfaces() = 0;
  virtual std::vector<CommandInterface> export_command_interfaces() = 0;
  virtual return_type read(const rclcpp::Time &, const rclcpp::Duration &) = 0;
  virtual return_type write(const rclcpp::Time &, const rclcpp::Duration &) = 0;

 protected:
  HardwareInfo info_;
};
}  // namespace hardware_interface
