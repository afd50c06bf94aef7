// SPDX-License-Identifier: Apache-2.0
// Runs Kafka's own command line tools in one warm JVM, for a start of a JVM costs seconds. Listens on a free loopback
// port, which it writes to the file args[0]; a connection sends the tool's class and its arguments, a line each, and
// gets the exit code on a line, then what the tool printed.
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

public final class Tools {
  /** A tool's exit. Some tools catch it and exit once more with another code: the first one counts. */
  static final class Ended extends Error {}
  static Integer ended;

  static void end(int code) {
    if (ended == null) ended = code;
    throw new Ended();
  }

  static int run(String tool, String[] args) throws Exception {
    ended = null;
    try {
      Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) args);
      return 0;
    } catch (java.lang.reflect.InvocationTargetException thrown) {
      if (ended != null) return ended;
      thrown.getCause().printStackTrace();
      return 1;
    }
  }

  static void serve(Socket socket) throws Exception {
    String[] lines = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8).split("\n");
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    PrintStream to = new PrintStream(said, true, "UTF-8"), out = System.out, err = System.err;
    System.setOut(to);
    System.setErr(to);
    int code;
    try {
      code = scala.Console.withOut(to, () -> scala.Console.withErr(to, () -> {
        try {
          return run(lines[0], Arrays.copyOfRange(lines, 1, lines.length));
        } catch (Exception e) {
          e.printStackTrace();
          return 1;
        }
      }));
    } finally {
      System.setOut(out);
      System.setErr(err);
    }
    to.flush();
    socket.getOutputStream().write((code + "\n").getBytes(StandardCharsets.UTF_8));
    socket.getOutputStream().write(said.toByteArray());
  }

  public static void main(String[] args) throws Exception {
    Exit.setExitProcedure((code, message) -> end(code));
    Exit.setHaltProcedure((code, message) -> end(code));
    try (ServerSocket server = new ServerSocket(0, 16, InetAddress.getLoopbackAddress())) {
      Path fresh = Path.of(args[0] + ".new");
      Files.writeString(fresh, Integer.toString(server.getLocalPort()));
      Files.move(fresh, Path.of(args[0]), StandardCopyOption.ATOMIC_MOVE);
      for (;;) {
        try (Socket socket = server.accept()) {
          serve(socket);
        }
      }
    }
  }
}
