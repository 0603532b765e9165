// Judges one program after another in one process, as the command line of Dafny 2.3 does in a process of its own.
//
// Reads a line of a program in base 64, written to the file that is the last of the next line's words, separated by tabs;
// answers "resolved 0" once the program has parsed and resolved,
// goes on to the proofs when the next line is "go", and ends with "done CODE LENGTH" and LENGTH bytes of output, CODE
// being the command line's exit code (98: stopped at "resolved", 99: Dafny failed). What a program makes Dafny print
// is only ever inside those bytes.
//
// Boogie numbers what it makes by counters that are static, and the numbers reach the prover. They are put back after
// each program to what a fresh process has, so that the prover reads byte for byte what it would there.

using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Text;
using System.Threading;
using Microsoft.Boogie;
using Microsoft.Dafny;

static class Warm {
  const BindingFlags Statics =
    BindingFlags.Static | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly;
  const int Stack = 0x10000000; // as the command line's own thread
  const int Longest = 1 << 20; // characters of output
  static readonly List<FieldInfo> counters = new List<FieldInfo>();
  static TextReader input;
  static Stream output;

  static int Main(string[] args) {
    input = new StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false));
    output = Console.OpenStandardOutput();
    Load(args[0]);
    Calibrate(args[1].Split('\t'));
    var fresh = Read();
    Say("ready", "");
    string line;
    while ((line = input.ReadLine()) != null) {
      string said;
      var words = input.ReadLine().Split('\t');
      File.WriteAllBytes(words[words.Length - 1], Convert.FromBase64String(line));
      int code = Run(words, true, out said);
      Write(fresh);
      Say("done " + code, said);
    }
    return 0;
  }

  static void Load(string folder) {
    foreach (var path in Directory.GetFiles(folder, "*.dll")) {
      var name = Path.GetFileNameWithoutExtension(path);
      if (!name.StartsWith("Boogie") && name != "DafnyPipeline") continue;
      System.Type[] types;
      try {
        types = Assembly.LoadFrom(path).GetTypes();
      } catch (ReflectionTypeLoadException e) { // a viewer's types need a library of windows
        types = e.Types;
      }
      foreach (var type in types) {
        if (type == null || type.ContainsGenericParameters) continue;
        foreach (var field in type.GetFields(Statics))
          if (!field.IsLiteral && !field.IsInitOnly && field.FieldType.IsPrimitive) counters.Add(field);
      }
    }
  }

  // The first program of a process counts some things that are made once. Run one twice from the same numbers: what
  // the first run counted beyond the second is where a fresh process stands when its own program begins.
  static void Calibrate(string[] words) {
    string said;
    var start = Read();
    Run(words, false, out said);
    var first = Read();
    Write(start);
    Run(words, false, out said);
    var second = Read();
    for (int i = 0; i < start.Length; i++)
      if (start[i] is int) start[i] = (int)start[i] + (int)first[i] - (int)second[i];
    Write(start);
  }

  static object[] Read() {
    return counters.ConvertAll(field => field.GetValue(null)).ToArray();
  }

  static void Write(object[] values) {
    for (int i = 0; i < values.Length; i++) counters[i].SetValue(null, values[i]);
  }

  static int Run(string[] words, bool ask, out string said) {
    var text = new Bounded();
    Console.SetOut(text);
    int code = 99;
    var thread = new Thread(() => {
      try {
        code = Judge(words, ask);
      } catch (Exception e) {
        text.Write(e.GetType().Name + ": " + e.Message);
      }
    }, Stack);
    thread.Start();
    thread.Join();
    said = text.ToString();
    return code;
  }

  static int Judge(string[] words, bool ask) {
    ErrorReporter reporter = new ConsoleErrorReporter();
    var printer = typeof(DafnyDriver).GetNestedType("DafnyConsolePrinter", BindingFlags.NonPublic);
    ExecutionEngine.printer = (OutputPrinter)Activator.CreateInstance(printer, true);
    DafnyOptions.Install(new DafnyOptions(reporter));
    List<DafnyFile> files;
    List<string> others;
    int unusable = Convert.ToInt32(DafnyDriver.ProcessCommandLineArguments(words, out files, out others));
    if (unusable != 0) return unusable;
    Microsoft.Dafny.Program program;
    string fault = Microsoft.Dafny.Main.ParseCheck(files, files[0].FilePath, reporter, out program);
    if (fault != null) {
      Console.WriteLine(fault);
      return 2;
    }
    if (ask) {
      Say("resolved", "");
      if (input.ReadLine() != "go") return 98;
    }
    Dictionary<string, PipelineStatistics> counts;
    PipelineOutcome outcome;
    string name = Path.GetFileName(files[0].FilePath);
    bool proved = DafnyDriver.Boogie(name, DafnyDriver.Translate(program), "main_program_id", out counts, out outcome);
    int verified = 0, errors = 0;
    foreach (var module in counts.Values) {
      verified += module.VerifiedCount;
      errors += module.ErrorCount;
    }
    Console.WriteLine();
    Console.WriteLine("Dafny program verifier finished with {0} verified, {1} errors", verified, errors);
    return proved ? 0 : 4;
  }

  static void Say(string what, string text) {
    var body = Encoding.UTF8.GetBytes(text);
    var head = Encoding.UTF8.GetBytes(what + " " + body.Length + "\n");
    output.Write(head, 0, head.Length);
    output.Write(body, 0, body.Length);
    output.Flush();
  }

  class Bounded : StringWriter {
    public override void Write(char value) {
      if (GetStringBuilder().Length < Longest) base.Write(value);
    }

    public override void Write(string value) {
      if (GetStringBuilder().Length < Longest) base.Write(value);
    }

    public override void Write(char[] buffer, int index, int count) {
      if (GetStringBuilder().Length < Longest) base.Write(buffer, index, count);
    }
  }
}
